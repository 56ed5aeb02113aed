package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Errors of drivers that the store treats differently.
type (
	stateError string // of PostgreSQL
	codeError  int    // of SQLite
)

func (e stateError) Error() string    { return "ERROR: something (SQLSTATE " + string(e) + ")" }
func (e stateError) SQLState() string { return string(e) }

// fieldError is an error of SQLite with a field for the code, and no method.
type fieldError struct{ Code fieldCode }

type fieldCode int

func (e fieldError) Error() string { return fmt.Sprintf("something (%d)", e.Code) }

// numberError is an error of MySQL, in the form of the common driver.
type numberError struct {
	Number  uint16
	Message string
}

func (e *numberError) Error() string { return fmt.Sprintf("Error %d: %s", e.Number, e.Message) }

func (e codeError) Error() string { return fmt.Sprintf("something (%d)", int(e)) }
func (e codeError) Code() int     { return int(e) }

// anyConflict is a conflict for every dialect.
type anyConflict struct{ Number uint16 }

func (*anyConflict) Error() string    { return "a conflict" }
func (*anyConflict) SQLState() string { return "40001" }
func (*anyConflict) Code() int        { return 5 }

var (
	errConflict    = &anyConflict{1213}
	errDeadlock    = &numberError{1213, "Deadlock found when trying to get lock"}
	errLockTimeout = &numberError{1205, "Lock wait timeout exceeded"}
)

func set() webhookcfg.Change {
	return webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL("https://hooks.example.com/t0ken"))
}

func unset() webhookcfg.Change { return webhookcfg.UnsetChange("acme", webhookcfg.Entity("e1")) }

func setAll() webhookcfg.Change {
	return webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/t0ken"))
}

// Outcomes of a change, as you see them from Apply.
type outcome string

const (
	made    outcome = "applied"
	notMade outcome = "not applied"
	unknown outcome = "unknown"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return made
	case errors.Is(err, sqlstore.ErrOutcomeUnknown):
		return unknown
	default:
		return notMade
	}
}

// TestApplyOutcomes: a change is retried after a proven rollback. It fails if nothing was
// changed. Otherwise its outcome is unknown.
func TestApplyOutcomes(t *testing.T) {
	postgres, mysql, sqlite := sqlstore.PostgreSQL(), sqlstore.MySQL(), sqlstore.SQLite()
	always := 1 << 30
	for _, tt := range []struct {
		dialect sqlstore.Dialect
		change  webhookcfg.Change
		at      string // the call that fails
		err     error
		times   int
		want    outcome
		tries   int // of that call; resolving an unknown outcome makes a second commit
	}{
		{postgres, set(), "connect", io.EOF, always, notMade, 1},
		{postgres, set(), "begin", stateError("40001"), 2, made, 3},
		{postgres, set(), "WITH", stateError("40001"), 3, made, 4},
		{postgres, set(), "WITH", stateError("40P01"), 1, made, 2},
		{postgres, set(), "WITH", stateError("40001"), always, notMade, 100},
		{postgres, set(), "WITH", driver.ErrBadConn, 1, made, 2},
		{postgres, set(), "WITH", stateError("23514"), always, notMade, 1},
		{postgres, set(), "WITH", stateError("42P01"), always, notMade, 1},
		{postgres, set(), "WITH", stateError("25006"), always, notMade, 1},
		{postgres, set(), "WITH", stateError("57P01"), always, notMade, 1},
		{postgres, set(), "WITH", context.DeadlineExceeded, always, notMade, 1},
		{postgres, set(), "commit", stateError("40001"), 1, made, 2},
		{postgres, set(), "commit", stateError("23505"), always, notMade, 1},
		{postgres, set(), "commit", stateError("25006"), always, notMade, 1},
		{postgres, set(), "commit", stateError("40002"), always, notMade, 1},
		{postgres, set(), "commit", stateError("40003"), always, unknown, 2},
		{postgres, set(), "commit", stateError("25P03"), always, unknown, 2},
		{postgres, set(), "commit", stateError("53100"), always, unknown, 2},
		{postgres, set(), "commit", stateError("57014"), always, unknown, 2},
		{postgres, set(), "commit", stateError("57P01"), always, unknown, 2},
		{postgres, set(), "commit", stateError("08006"), always, unknown, 2},
		{postgres, set(), "commit", stateError("XX000"), always, unknown, 2},
		{postgres, set(), "commit", io.ErrUnexpectedEOF, always, unknown, 2},
		{postgres, set(), "commit", io.EOF, always, unknown, 2},
		{postgres, set(), "commit", driver.ErrBadConn, always, unknown, 2},
		{postgres, set(), "commit", context.DeadlineExceeded, always, unknown, 2},
		{postgres, set(), "commit", errDeadlock, always, unknown, 2},
		{postgres, setAll(), "INSERT", stateError("40001"), 1, made, 2},
		{postgres, setAll(), "INSERT", io.EOF, always, notMade, 1},
		{postgres, setAll(), "commit", io.EOF, always, unknown, 2},
		{postgres, unset(), "begin", io.EOF, always, notMade, 1},
		{postgres, unset(), "INSERT INTO wh_override", io.EOF, always, notMade, 1},
		{postgres, unset(), "DELETE", stateError("40001"), 1, made, 2},
		{postgres, unset(), "commit", io.EOF, always, unknown, 2},

		{mysql, set(), "INSERT INTO wh_override", errDeadlock, 1, made, 2},
		{mysql, set(), "INSERT INTO wh_override", fmt.Errorf("wrapped: %w", errLockTimeout), 1, made, 2},
		{mysql, set(), "INSERT INTO wh_override", errors.New("invalid connection"), always, notMade, 1},
		{mysql, set(), "commit", errDeadlock, 1, made, 2},
		{mysql, set(), "commit", errors.New("invalid connection"), always, unknown, 2},
		{mysql, set(), "commit", errors.New("Error 1213 (40001): only a text"), always, unknown, 2},
		{mysql, setAll(), "INSERT", &numberError{1290, "The server is running with --read-only"}, always, notMade, 1},
		{mysql, setAll(), "INSERT", &numberError{1020, "Record has changed since last read in table"}, 1, made, 2},
		{mysql, setAll(), "commit", &numberError{1290, "The server is running with --read-only"}, always, notMade, 1},
		{mysql, setAll(), "commit", &numberError{1047, "WSREP has not yet prepared node for application use"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{1053, "Server shutdown in progress"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{1180, "Got error 5 during COMMIT"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{1317, "Query execution was interrupted"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{1927, "Connection was killed"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{1969, "Query was interrupted: execution time limit"}, always, unknown, 2},
		{mysql, setAll(), "commit", &numberError{4031, "The client was disconnected by the server because of inactivity"}, always, unknown, 2},
		{mysql, setAll(), "INSERT", &numberError{1047, "WSREP has not yet prepared node for application use"}, always, notMade, 1},
		{mysql, setAll(), "commit", errors.New("invalid connection"), always, unknown, 2},

		{sqlite, set(), "begin", codeError(5), 3, made, 4},
		{sqlite, set(), "begin", codeError(5 | 2<<8), 1, made, 2},
		{sqlite, set(), "begin", codeError(6), 1, made, 2},
		{sqlite, set(), "begin", errors.New("database is locked"), always, notMade, 1},
		{sqlite, set(), "begin", context.DeadlineExceeded, always, notMade, 1},
		{sqlite, setAll(), "INSERT", codeError(8), always, notMade, 1},
		{sqlite, setAll(), "INSERT", codeError(10), always, notMade, 1},
		{sqlite, setAll(), "commit", codeError(13), always, notMade, 1},
		{sqlite, setAll(), "commit", codeError(19 | 3<<8), always, notMade, 1},
		{sqlite, setAll(), "commit", codeError(8), always, notMade, 1},
		{sqlite, setAll(), "commit", fieldError{Code: 13}, always, notMade, 1},
		{sqlite, setAll(), "commit", fmt.Errorf("wrapped: %w", &fieldError{Code: 5 | 2<<8}), 1, made, 2},
		{sqlite, setAll(), "commit", fieldError{Code: 10}, always, unknown, 2},
		{sqlite, setAll(), "commit", codeError(10), always, unknown, 2},
		{sqlite, setAll(), "commit", codeError(10 | 4<<8), always, unknown, 2}, // of fsync
		{sqlite, setAll(), "commit", codeError(7), always, unknown, 2},
		{sqlite, setAll(), "commit", codeError(11), always, unknown, 2},
		{sqlite, setAll(), "commit", errors.New("disk I/O error"), always, unknown, 2},
	} {
		name := fmt.Sprintf("%s/%s/%v/%v", tt.dialect, tt.at, tt.err, tt.times == always)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := openFake(t, tt.dialect, nil, failing(tt.at, tt.err, tt.times))
				err := s.Apply(t.Context(), tt.change)
				if got := outcomeOf(err); got != tt.want {
					t.Errorf("%s, want %s: %v", got, tt.want, err)
				}
				if tt.want != made && !errors.Is(err, tt.err) && !errors.Is(err, driver.ErrBadConn) {
					t.Errorf("%v does not wrap its cause", err)
				}
				if got := f.count(tt.at); got != tt.tries {
					t.Errorf("%d tries, want %d: %s", got, tt.tries, f.shape())
				}
			})
		})
	}
}

// TestRoundTrips checks the round trips of each change.
func TestRoundTrips(t *testing.T) {
	one, two := "connect begin INSERT commit", "connect begin INSERT INSERT commit"
	dropping := "connect begin INSERT INSERT DELETE commit"
	for _, tt := range []struct {
		dialect sqlstore.Dialect
		change  webhookcfg.Change
		want    string
	}{
		{sqlstore.PostgreSQL(), set(), "connect begin WITH commit"},
		{sqlstore.PostgreSQL(), unset(), dropping},
		{sqlstore.PostgreSQL(), setAll(), one},
		{sqlstore.MySQL(), set(), two},
		{sqlstore.MySQL(), unset(), dropping},
		{sqlstore.MySQL(), setAll(), one},
		{sqlstore.SQLite(), set(), two},
		{sqlstore.SQLite(), unset(), dropping},
		{sqlstore.SQLite(), setAll(), one},
	} {
		s, f := openFake(t, tt.dialect, nil, failing("nothing", nil, 0))
		if err := s.Apply(t.Context(), tt.change); err != nil {
			t.Fatal(err)
		}
		if got := f.shape(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.dialect, got, tt.want)
		}
	}
}

// TestEndedContext: nothing is sent once the context has ended.
func TestEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, dialect := range dialects() {
		s, f := openFake(t, dialect, nil, failing("nothing", nil, 0))
		for _, err := range []error{
			s.Apply(ended, set()), s.Apply(ended, unset()), s.Apply(ended, setAll()), s.Migrate(ended),
			second(s.Resolve(ended, "acme", "e1")), second(s.List(ended, "acme", "", 1)),
			second(s.Versions(ended, []string{"acme"})), second(s.Sweep(ended, 1)),
			second(s.LoadDelivery(ended, "acme", webhookcfg.All())), s.SaveDelivery(ended, "acme", webhookcfg.All(), deliver.Record{}),
		} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", dialect, err)
			}
		}
		if f.count("") > 0 {
			t.Errorf("%s: sent %s", dialect, f.shape())
		}
	}
}

// TestContextEndsBeforeCommit: a change ends if its context ends before the commit is sent.
func TestContextEndsBeforeCommit(t *testing.T) {
	for _, dialect := range dialects() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, f := openFake(t, dialect, nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "INSERT INTO wh_client") {
				cancel()
			}
			return nil, nil
		})
		if err := s.Apply(ctx, setAll()); !errors.Is(err, context.Canceled) || outcomeOf(err) != notMade {
			t.Errorf("%s: %v", dialect, err)
		}
		if want := "connect begin INSERT rollback"; f.shape() != want {
			t.Errorf("%s: %s, want %s", dialect, f.shape(), want)
		}
	}
}

// TestConnections: a connection returns to the pool only if its transaction has ended.
func TestConnections(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		at            string
		rollbackFails bool
		open          int
	}{
		{"nothing", false, 1},
		{"begin", false, 1},
		{"INSERT INTO wh_override", false, 1},
		{"commit", false, 1},
		{"begin", true, 0},
		{"INSERT INTO wh_override", true, 0},
		{"commit", true, 0},
	} {
		s, f := openFake(t, sqlstore.MySQL(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, tt.at) || tt.rollbackFails && call == "rollback" {
				return nil, broken
			}
			return nil, nil
		})
		if err := s.Apply(t.Context(), set()); (err == nil) != (tt.at == "nothing") {
			t.Errorf("%s: %v", tt.at, err)
		}
		if f.opened(0) != tt.open {
			t.Errorf("%s fails, rollback %v: %d connections are open, want %d", tt.at, tt.rollbackFails, f.opened(0), tt.open)
		}
	}
}

// TestContextEndsBetweenAttempts: once the context has ended, there's no further attempt and
// no wait.
func TestContextEndsBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := openFake(t, sqlstore.PostgreSQL(), nil, failing("WITH", stateError("40001"), 1<<30))
		const timeout = 3 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		start := time.Now()
		err := s.Apply(ctx, set())
		if !errors.Is(err, context.DeadlineExceeded) || outcomeOf(err) != notMade {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited > timeout {
			t.Errorf("returned after %s", waited)
		}
		if n := f.count("WITH"); n > 99 {
			t.Errorf("%d tries", n)
		}
	})
}

// TestOneWriter: with SQLite changes take turns, and a wait for the write lock ends with the
// context.
func TestOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, f := openFake(t, sqlstore.SQLite(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			if call == "commit" {
				<-release
			}
			return nil, nil
		})
		first := make(chan error, 1)
		go func() { first <- s.Apply(context.Background(), set()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Apply(ctx, set()); !errors.Is(err, context.DeadlineExceeded) || outcomeOf(err) != notMade {
			t.Errorf("while another writes: %v", err)
		}
		if f.count("begin") != 1 {
			t.Errorf("two transactions started: %s", f.shape())
		}
		close(release)
		if err := errors.Join(<-first, s.Apply(t.Context(), set())); err != nil {
			t.Error(err)
		}
	})
}

// clientOf returns the client that a statement changes, or "" for other calls.
func clientOf(call string, args []driver.NamedValue) string {
	if !strings.HasPrefix(call, "INSERT INTO wh_client") && !strings.HasPrefix(call, "WITH") {
		return ""
	}
	return string(args[0].Value.([]byte))
}

// TestOneChangeOfAClient: while a change waits for its client's row, the client's other
// changes take no connection. Other clients don't wait for any of them.
func TestOneChangeOfAClient(t *testing.T) {
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		t.Run(dialect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unlocked := make(chan struct{})
				s, f := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
					if clientOf(call, args) == "acme" {
						<-unlocked
					}
					return nil, nil
				})
				const waiting = 20
				results := make(chan error, waiting)
				for n := range waiting {
					c := []webhookcfg.Change{set(), unset(), setAll()}[n%3]
					go func() { results <- s.Apply(context.Background(), c) }()
				}
				synctest.Wait()
				if n := f.count("connect"); n != 1 {
					t.Errorf("%d connections", n)
					close(unlocked)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := s.Apply(ctx, set()); !errors.Is(err, context.DeadlineExceeded) || outcomeOf(err) != notMade {
					t.Errorf("one more: %v", err)
				}
				if err := s.Apply(t.Context(), webhookcfg.UnsetChange("other", webhookcfg.All())); err != nil {
					t.Errorf("another client: %v", err)
				}
				close(unlocked)
				for range waiting {
					if err := <-results; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestOneWriterIsFair: with SQLite a change waits for one change of each other client, even
// if they've requested more.
func TestOneWriterIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unlocked := make(chan struct{})
		var order []string
		s, _ := openFake(t, sqlstore.SQLite(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if client := clientOf(call, args); client != "" {
				<-unlocked
				order = append(order, client)
			}
			return nil, nil
		})
		var changes sync.WaitGroup
		for _, client := range []string{"acme", "acme", "acme", "acme", "acme", "other"} {
			changes.Go(func() {
				if err := s.Apply(t.Context(), webhookcfg.UnsetChange(client, webhookcfg.All())); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(unlocked)
		changes.Wait()
		if at := slices.Index(order, "other"); at != 1 {
			t.Errorf("the order is %v", order)
		}
	})
}

// lostCommit is a database whose first commit fails. later returns the errors of the
// calls after it.
type lostCommit struct {
	commit    error
	later     func(call string) error
	committed atomic.Bool
}

func (u *lostCommit) on(call string, _ []driver.NamedValue) (resultRows, error) {
	switch {
	case call == "rollback":
		return nil, nil
	case u.committed.Load():
		return nil, u.later(call)
	case call == "commit":
		u.committed.Store(true)
		return nil, u.commit
	}
	return nil, nil
}

// TestResolveOutcome: if the commit wasn't acknowledged, the client's mark proves that the
// change was applied. Nothing proves that it wasn't.
func TestResolveOutcome(t *testing.T) {
	const atOnce, soon = 0, 15 * time.Millisecond
	fails := func(prefix string, err error, times int) func(string) error {
		next := failing(prefix, err, times)
		return func(call string) error { _, err := next(call, nil); return err }
	}
	for name, tt := range map[string]struct {
		later func() func(call string) error // a new one for each change
		want  outcome
		took  time.Duration // at most
	}{
		"ours":                    {func() func(string) error { return fails("nothing", nil, 0) }, made, atOnce},
		"another's":               {func() func(string) error { return fails("UPDATE wh_client SET mark", errNoRows, 1) }, unknown, atOnce},
		"a stale connection":      {func() func(string) error { return fails("begin", driver.ErrBadConn, 1) }, made, soon},
		"a conflict":              {func() func(string) error { return fails("UPDATE", errConflict, 2) }, made, soon},
		"no database":             {func() func(string) error { return fails("", io.EOF, 1<<30) }, unknown, atOnce},
		"no resultRows once more": {func() func(string) error { return fails("commit", io.EOF, 1) }, unknown, atOnce},
		"conflicts to the end":    {func() func(string) error { return fails("UPDATE", errConflict, 1<<30) }, unknown, 500 * time.Millisecond},
	} {
		for _, dialect := range dialects() {
			for _, c := range []webhookcfg.Change{set(), unset(), setAll()} {
				t.Run(name+"/"+dialect.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						u := &lostCommit{commit: io.ErrUnexpectedEOF, later: tt.later()}
						s, f := openFake(t, dialect, nil, u.on)
						start := time.Now()
						err := s.Apply(t.Context(), c)
						if got := outcomeOf(err); got != tt.want {
							t.Errorf("%s, want %s: %v; %s", got, tt.want, err, f.shape())
						}
						if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
							t.Errorf("%v does not wrap its cause", err)
						}
						if took := time.Since(start); took > tt.took {
							t.Errorf("took %s, want %s at most", took, tt.took)
						}
					})
				})
			}
		}
	}
}

// TestResolveOutcomeStatements: the first statement waits for every change of the client,
// even if its mark isn't visible yet. The second writes, with a new mark.
func TestResolveOutcomeStatements(t *testing.T) {
	for _, dialect := range dialects() {
		var updates []string
		var marks []any
		u := &lostCommit{commit: io.ErrUnexpectedEOF, later: func(string) error { return nil }}
		s, _ := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "UPDATE") {
				updates = append(updates, strings.NewReplacer("?", "$", "$1", "$", "$2", "$", "$3", "$").Replace(call))
				for _, arg := range args {
					if _, ok := arg.Value.(int64); ok {
						marks = append(marks, arg.Value)
					}
				}
			}
			return u.on(call, args)
		})
		if err := s.Apply(t.Context(), set()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"UPDATE wh_client SET swept = swept WHERE id = $",
			"UPDATE wh_client SET mark = $ WHERE id = $ AND mark = $",
		}
		if !slices.Equal(updates, want) {
			t.Errorf("%s: %q, want %q", dialect, updates, want)
		}
		if len(marks) != 2 || marks[0] == marks[1] {
			t.Errorf("%s: marks %v", dialect, marks)
		}
	}
}

// TestResolveOutcomeAfterContextEnds: the outcome is also found out after the context has
// ended, on a connection without a transaction.
func TestResolveOutcomeAfterContextEnds(t *testing.T) {
	for _, dialect := range dialects() {
		ctx, cancel := context.WithCancel(t.Context())
		u := &lostCommit{commit: context.Canceled, later: func(string) error {
			if ctx.Err() == nil {
				t.Error("resolved before the context ended")
			}
			return nil
		}}
		s, f := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if call == "commit" {
				cancel()
			}
			return u.on(call, args)
		})
		if err := s.Apply(ctx, setAll()); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
		if want := "connect begin INSERT commit rollback begin UPDATE UPDATE commit"; f.shape() != want {
			t.Errorf("%s: %s, want %s", dialect, f.shape(), want)
		}
	}
}

// TestOutcomeKnown: if the commit wasn't sent, or was rejected, there's nothing to find out.
func TestOutcomeKnown(t *testing.T) {
	for _, at := range []string{"connect", "begin", "INSERT"} {
		s, f := openFake(t, sqlstore.MySQL(), nil, failing(at, io.ErrUnexpectedEOF, 1))
		if err := s.Apply(t.Context(), setAll()); outcomeOf(err) != notMade {
			t.Errorf("%s: %v", at, err)
		}
		if f.count("UPDATE") > 0 {
			t.Errorf("outcome was resolved: %s", f.shape())
		}
	}
	s, f := openFake(t, sqlstore.PostgreSQL(), nil, failing("commit", stateError("23514"), 1))
	if err := s.Apply(t.Context(), setAll()); outcomeOf(err) != notMade || f.count("UPDATE") > 0 {
		t.Errorf("%v: %s", err, f.shape())
	}
}
