package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Store     = (*Store)(nil)
	_ webhookcfg.Lister    = (*Store)(nil)
	_ webhookcfg.Versioner = (*Store)(nil)
)

// The longest names and URL that a Store keeps, in bytes. Names have to fit into
// an index of every engine, and none may cut off what is too long for a column.
const (
	maxName = 1024
	maxURL  = 65535
)

// Store is a [webhookcfg.Store] in a database, a [webhookcfg.Lister] and, with
// every dialect, a [webhookcfg.Versioner]; [Store.WithFeed] makes a
// [webhookcfg.Feed] of it where the engine can tell what changed. It is durable
// as far as the database is: see the documentation of the package.
//
// A Store holds nothing but the handle that it was given, which remains the
// caller's to close. It is safe for concurrent use.
type Store struct {
	db        *sql.DB
	dialect   *dialectSpec
	queries   queries
	retryable func(error) bool
	logger    *slog.Logger
	writeLock writeLock
}

// Options are what may be left out in [New].
type Options struct {
	// Prefix begins the names of all tables; "" means "wh_". It is a lower-case
	// letter and up to 31 more letters, digits and underscores, all lower-case.
	Prefix string

	// Retryable names further errors after which a change may be tried again, where
	// the driver has some that the Store does not know. It must say true only if the
	// error proves that nothing of the transaction was, or will be, committed. It
	// is called with what the driver returned, from many goroutines.
	Retryable func(err error) bool

	// Logger hears of transactions that are tried again, at level Debug, and of
	// migrations, at level Info. Nil is silence.
	Logger *slog.Logger
}

// New returns a store in the database behind db. It does no I/O: [Store.Migrate]
// has to have been run, once, before the store can be used. Nil options are the
// zero [Options]. A nil db, the zero [Dialect] and a Prefix that breaks the rule
// give an error.
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
	prefix, err := tablePrefix(opts.Prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{
		db:        db,
		dialect:   dialect.spec,
		queries:   dialect.spec.queries(prefix),
		retryable: opts.Retryable,
		logger:    opts.Logger,
	}
	if s.dialect.oneWriter {
		s.writeLock = make(writeLock, 1)
	}
	if s.retryable == nil {
		s.retryable = func(error) bool { return false }
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Apply implements [webhookcfg.Store]. Of the time of the change it keeps the
// whole seconds. A client or an entity of more than 1,024 bytes, or a URL of more
// than 65,535, gives an error that wraps [webhookcfg.ErrInvalidArgument].
//
// Where the commit was sent and not answered, Apply asks what became of it, for half a
// second at most: so long it may outlast ctx. If that does not tell either, the error
// wraps [ErrOutcomeUnknown]. With any other error the change was not made, and is not
// going to be.
func (s *Store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := validate(c); err != nil {
		return err
	}
	v := values{
		"client": []byte(c.Client),
		"entity": []byte(c.Scope.Entity()),
		"url":    []byte(c.URL.Reveal()),
		"since":  c.Time.Unix(),
		"mark":   rand.Int64(),
	}
	_, err := s.write(ctx, s.statements(c), v)
	if errors.Is(err, ErrOutcomeUnknown) && s.resolveOutcome(ctx, v) {
		return nil
	}
	return wrapError("apply", err, c.URL)
}

// statements are the statements of a change, which make one transaction. The first of
// them locks the row of the client.
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

// checkNames refuses what is too long for a column before an engine cuts it off.
func checkNames(names ...string) error {
	for _, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("%w: a name of more than %d bytes", webhookcfg.ErrInvalidArgument, maxName)
		}
	}
	return nil
}
