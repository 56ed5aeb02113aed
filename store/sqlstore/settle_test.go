package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// unanswered is a database whose first commit fails. What comes of later calls asked
// says.
type unanswered struct {
	commit    error
	asked     func(call string) error
	committed atomic.Bool
}

func (u *unanswered) on(call string, _ []driver.NamedValue) (answer, error) {
	switch {
	case call == "rollback":
		return nil, nil
	case u.committed.Load():
		return nil, u.asked(call)
	case call == "commit":
		u.committed.Store(true)
		return nil, u.commit
	}
	return nil, nil
}

// TestSettle: of a change whose commit was not answered, the mark of the client
// tells that it was made; nothing tells that it was not.
func TestSettle(t *testing.T) {
	const atOnce, soon = 0, 15 * time.Millisecond
	fails := func(prefix string, err error, times int) func(string) error {
		next := failing(prefix, err, times)
		return func(call string) error { _, err := next(call, nil); return err }
	}
	for name, tt := range map[string]struct {
		asked func() func(call string) error // for each change another
		want  outcome
		took  time.Duration // at most
	}{
		"ours":                 {func() func(string) error { return fails("nothing", nil, 0) }, made, atOnce},
		"another's":            {func() func(string) error { return fails("UPDATE wh_client SET mark", errNoRows, 1) }, unknown, atOnce},
		"a stale connection":   {func() func(string) error { return fails("begin", driver.ErrBadConn, 1) }, made, soon},
		"a conflict":           {func() func(string) error { return fails("UPDATE", errMine, 2) }, made, soon},
		"no database":          {func() func(string) error { return fails("", io.EOF, 1<<30) }, unknown, atOnce},
		"no answer once more":  {func() func(string) error { return fails("commit", io.EOF, 1) }, unknown, atOnce},
		"conflicts to the end": {func() func(string) error { return fails("UPDATE", errMine, 1<<30) }, unknown, 500 * time.Millisecond},
	} {
		for _, dialect := range dialects() {
			for _, c := range []webhookcfg.Change{set(), unset(), setAll()} {
				t.Run(name+"/"+dialect.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						u := &unanswered{commit: io.ErrUnexpectedEOF, asked: tt.asked()}
						opts := &sqlstore.Options{Retryable: func(err error) bool { return errors.Is(err, errMine) }}
						s, f := openFake(t, dialect, opts, u.on)
						begun := time.Now()
						err := s.Apply(t.Context(), c)
						if got := outcomeOf(err); got != tt.want {
							t.Errorf("%s, want %s: %v; %s", got, tt.want, err, f.shape())
						}
						if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
							t.Errorf("the cause is gone from %v", err)
						}
						if took := time.Since(begun); took > tt.took {
							t.Errorf("took %s, want %s at most", took, tt.took)
						}
					})
				})
			}
		}
	}
}

// TestSettleAfterTheEnd of the context: a change is asked for that was made all the
// same, and on a connection on which nothing is left behind.
func TestSettleAfterTheEnd(t *testing.T) {
	for _, dialect := range dialects() {
		ctx, cancel := context.WithCancel(t.Context())
		u := &unanswered{commit: context.Canceled, asked: func(string) error {
			if ctx.Err() == nil {
				t.Error("asked before the context ended")
			}
			return nil
		}}
		s, f := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (answer, error) {
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

// TestNothingToSettle: where the commit was not sent, or was refused, nothing is
// asked.
func TestNothingToSettle(t *testing.T) {
	for _, at := range []string{"connect", "begin", "INSERT"} {
		s, f := openFake(t, sqlstore.MySQL(), nil, failing(at, io.ErrUnexpectedEOF, 1))
		if err := s.Apply(t.Context(), setAll()); outcomeOf(err) != notMade {
			t.Errorf("%s: %v", at, err)
		}
		if f.count("UPDATE") > 0 {
			t.Errorf("asked: %s", f.shape())
		}
	}
	s, f := openFake(t, sqlstore.PostgreSQL(), nil, failing("commit", stateError("23514"), 1))
	if err := s.Apply(t.Context(), setAll()); outcomeOf(err) != notMade || f.count("UPDATE") > 0 {
		t.Errorf("%v: %s", err, f.shape())
	}
}
