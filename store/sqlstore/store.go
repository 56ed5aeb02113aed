package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"

	"example.com/go-webhookcfg/internal/healthcheck"
	"example.com/go-webhookcfg/internal/keylock"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Store  = (*Store)(nil)
	_ webhookcfg.Lister = (*Store)(nil)
	_ cache.Feed        = (*Store)(nil)
	_ cache.Versioner   = (*Store)(nil)
)

// Limits in bytes. Names must fit into an index of every engine, and an engine must not
// truncate a value to the length of its column.
const (
	maxName = 1024
	maxURL  = 65535
)

// Store is a [webhookcfg.Store] in a database. It's also a [webhookcfg.Lister], a
// [cache.Versioner] and, if the dialect supports it, a [cache.Feed]. It's as durable as your
// database. It is safe for concurrent use. You close the database handle yourself.
//
// Each client has a row with its base and a generation number. An override's key includes the
// generation. So a change of all entities only increments one number, and that drops all
// overrides. Names and URLs are stored as bytes: collations, encodings and trailing spaces
// don't matter.
//
// Operations on one client are linearizable if single statements of the database are. The
// tests check that with several replicas on PostgreSQL, MariaDB and SQLite, while servers are
// killed or frozen, a synchronous standby takes over, and connections break after each
// request and response.
type Store struct {
	db         *sql.DB
	dialect    *dialectSpec
	queries    queries
	migrations []migration
	logger     *slog.Logger
	isReady    atomic.Bool // a check of the schema has succeeded
	health     healthcheck.Check
	// changing lets one change of each client through at a time. Otherwise they would all
	// wait for the client's row in the database, with connections that other clients need.
	changing  keylock.Locks
	saving    keylock.Locks // the same for saves
	writing   keylock.Locks // has one key: with oneWriter, the store writes one change at a time
	lastSwept atomic.Pointer[dirtyClient]
}

// Options are the settings of a [Store], all optional.
type Options struct {
	// Prefix starts the names of all tables. The default is "wh_". It can have up to 32
	// lower-case letters, digits and underscores, and must start with a letter.
	Prefix string

	// Logger gets retries of transactions at level Debug, migrations at level Info, and
	// errors of [Store.SweepEvery] at level Warn. By default, nothing is logged.
	Logger *slog.Logger
}

// New returns a store in the database behind db. It does no I/O, so you can call it while the
// database is down. You can pass nil options.
//
// New returns an error if db is nil, or if the dialect or an option is invalid.
//
// The other methods check the schema until that has succeeded once. Until then they return
// errors if the tables are incomplete, made for another dialect or by a later version, or if
// the connections to MySQL or MariaDB don't have autocommit. The check is one query, and
// after its success it costs nothing.
//
// The driver must return [database/sql/driver.ErrBadConn] only if nothing was sent, as the
// documentation of ErrBadConn demands, because the statement is then sent again.
func New(db *sql.DB, dialect Dialect, opts *Options) (*Store, error) {
	if opts == nil {
		opts = new(Options)
	}
	if db == nil {
		return nil, errors.New("sqlstore: no database: db is nil")
	}
	if dialect.spec == nil {
		return nil, errNoDialect
	}
	prefix, err := tablePrefix(opts.Prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{
		db:         db,
		dialect:    dialect.spec,
		queries:    dialect.spec.queries(prefix),
		migrations: dialect.spec.migrations(prefix),
		logger:     opts.Logger,
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Apply implements [webhookcfg.Store]. The changes of one client are made one after another,
// in the order of the calls. Those that wait hold no connection. On MySQL and MariaDB,
// abandoned changes may keep sessions of the server for a while (see [MySQL]).
//
// A change is a transaction that first locks its client's row. After a deadlock, a
// serialization failure or a busy SQLite database, Apply retries it, up to a hundred times.
// It doesn't retry after other errors, because another process may have changed the same
// entry since: the handler responds with 503, and its client decides.
//
// If you abandon a change before its commit was sent, it's never applied. If the commit was
// sent but not acknowledged, Apply waits for the end of the transaction on another
// connection, for at most half a second, and succeeds if its change turns out to be the
// client's latest. Otherwise the error wraps [ErrOutcomeUnknown]. A late commit can't undo a
// later acknowledged change, because it still holds the lock. After any other error, the
// change was not made and never will be.
//
// So Apply can outlast ctx by half a second, and by another half if the driver doesn't close
// its connection when ctx ends.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if the client or the entity has more than
// 1,024 bytes, or the URL more than 65,535.
func (s *Store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := validate(c); err != nil {
		return err
	}
	v := values{
		"client": []byte(c.Client),
		"entity": []byte(c.Scope.Entity()),
		"url":    []byte(c.URL.Reveal()),
		"since":  c.Time.UnixMicro(),
		"mark":   rand.Int64(),
	}
	if err := s.ready(ctx); err != nil {
		return s.wrapError("apply", err, c.URL)
	}
	unlock, err := s.changing.Lock(ctx, c.Client)
	if err != nil {
		return s.wrapError("apply", err, c.URL)
	}
	defer unlock()
	_, err = s.write(ctx, s.statements(c), v)
	if errors.Is(err, ErrOutcomeUnknown) && s.resolveOutcome(ctx, v) {
		return nil
	}
	return s.wrapError("apply", err, c.URL)
}

// statements returns the statements of a change's transaction. The first one locks the
// client's row.
func (s *Store) statements(c webhookcfg.Change) []statement {
	switch {
	case c.Scope.IsAll():
		return []statement{s.queries.setAll}
	case c.URL.IsZero():
		return s.queries.unset
	default:
		return s.queries.set
	}
}

func validate(c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if len(c.URL.Reveal()) > maxURL {
		return fmt.Errorf("%w: a URL of more than %d bytes", webhookcfg.ErrInvalidArgument, maxURL)
	}
	return checkNames(c.Client, c.Scope.Entity())
}

// checkNames rejects names that are too long, before an engine truncates them.
func checkNames(names ...string) error {
	for _, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("%w: a name of more than %d bytes", webhookcfg.ErrInvalidArgument, maxName)
		}
	}
	return nil
}
