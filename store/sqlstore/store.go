package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/checkup"
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

// Limits of names and URLs in bytes. Names must fit into an index of every engine,
// and no engine may truncate a value to the length of its column.
const (
	maxName = 1024
	maxURL  = 65535
)

// Store is a [webhookcfg.Store] in a database. It is a [webhookcfg.Lister], a [cache.Feed]
// where the dialect supports one, and a [cache.Versioner] too. It is as durable as the
// database: see the package documentation.
//
// A Store owns no resources; the caller closes the database handle. It is safe for
// concurrent use.
type Store struct {
	db         *sql.DB
	dialect    *dialectSpec
	queries    queries
	migrations []migration
	retryable  func(error) bool
	logger     *slog.Logger
	isReady    atomic.Bool // a check of the schema succeeded
	readsOnly  bool        // the database may be a standby
	health     checkup.Checkup
	// changing admits one change of each client at a time. Without it, the changes of one
	// client would wait for its row in the database, each with a connection of the pool
	// that the calls of other clients then lack.
	changing  keylock.Locks
	saving    keylock.Locks // admits one save of each client at a time, for the same reason
	writing   keylock.Locks // of one key: a dialect with one writer writes one change at a time
	lastSwept atomic.Pointer[dirtyClient]
}

// Options are the optional settings of a [Store]. The zero value is valid.
type Options struct {
	// Prefix is the prefix of all table names; "" means "wh_". It consists of a
	// lower-case letter and up to 31 more lower-case letters, digits and underscores.
	Prefix string

	// Retryable reports whether a change may be retried after an error of the driver
	// that the Store does not recognize. It must return true only if the error proves
	// that no part of the transaction was, or will be, committed. It is called
	// concurrently. If nil, only recognized errors are retried.
	Retryable func(err error) bool

	// StandbyLag, for processes that only send, lets reads from a hot standby of PostgreSQL
	// succeed if the last transaction that it replayed was committed at most StandbyLag ago,
	// by the clocks of both servers. A result may then be older by as much than specified by
	// [webhookcfg.Store] or by a [cache.Cache]. All connections must lead to the same
	// standby, and the primary must commit more often than that, for instance a change made
	// by a timer. If zero, a read from a standby returns [ErrStandby].
	StandbyLag time.Duration

	// Logger receives retries of transactions at level Debug, migrations at level Info, and
	// errors of [Store.SweepEvery] at level Warn. If nil, nothing is logged.
	Logger *slog.Logger
}

// New returns a store in the database behind db. It does no I/O: until one of them
// succeeded, the calls of the other methods check the schema first. They return errors
// while the tables are not migrated completely, are those of another dialect or of a later
// version, and if the connections to MySQL or MariaDB do not have autocommit. Nil options
// are the zero [Options]. New returns an error if db is nil, the dialect is the zero
// [Dialect], or the prefix is invalid.
func New(db *sql.DB, dialect Dialect, opts *Options) (*Store, error) {
	if opts == nil {
		opts = new(Options)
	}
	if db == nil {
		return nil, errors.New("sqlstore: no database")
	}
	if dialect.spec == nil {
		return nil, errNoDialect
	}
	if opts.StandbyLag < 0 || opts.StandbyLag > 0 && dialect.spec.lagging == "" {
		return nil, fmt.Errorf("sqlstore: StandbyLag %v with %s", opts.StandbyLag, dialect)
	}
	prefix, err := tablePrefix(opts.Prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{
		db:         db,
		dialect:    dialect.spec,
		queries:    dialect.spec.queries(prefix, opts.StandbyLag),
		migrations: dialect.spec.migrations(prefix),
		retryable:  opts.Retryable,
		logger:     opts.Logger,
		readsOnly:  opts.StandbyLag > 0,
	}
	if s.retryable == nil {
		s.retryable = func(error) bool { return false }
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Apply implements [webhookcfg.Store]. The error wraps [webhookcfg.ErrInvalidArgument] if the client or the entity
// has more than 1,024 bytes, or the URL more than 65,535.
//
// The changes of one client are applied in the order of the calls, one at a time, and
// wait without a connection.
//
// If the commit was sent but not acknowledged, Apply determines its outcome from the
// database, for which it may outlast ctx by half a second. If that fails, the error
// wraps [ErrOutcomeUnknown]. With any other error the change was not applied, and never
// will be.
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

// statements returns the statements of a change's transaction. The first of them locks
// the row of the client.
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

// checkNames rejects names too long for a column before an engine truncates them.
func checkNames(names ...string) error {
	for _, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("%w: a name of more than %d bytes", webhookcfg.ErrInvalidArgument, maxName)
		}
	}
	return nil
}
