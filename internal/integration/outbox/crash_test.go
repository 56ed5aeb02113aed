package outbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// faulty is a driver whose calls fail from the nth on, as if the process had been killed
// there. The nth call itself takes effect or not.
type faulty struct {
	driver.Driver
	mu    sync.Mutex
	after int // calls until then; negative: never
	late  bool
	calls int
}

var errKilled = errors.New("killed")

// call counts a call of the database and makes it, unless the process is dead.
func (f *faulty) call(do func() error) error {
	f.mu.Lock()
	n := f.calls
	f.calls++
	after, late := f.after, f.late
	f.mu.Unlock()
	if after < 0 || n < after {
		return do()
	}
	if n == after && late {
		_ = do()
	}
	return errKilled
}

func (f *faulty) Open(name string) (driver.Conn, error) {
	c, err := f.Driver.Open(name)
	return &faultyConn{c, f}, err
}

type faultyConn struct {
	driver.Conn
	f *faulty
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	err = c.f.call(func() error {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return err
	})
	return &faultyTx{tx, c.f}, err
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.f.call(func() error {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return r, err
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.f.call(func() error {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	})
	return r, err
}

type faultyTx struct {
	driver.Tx
	f *faulty
}

func (t *faultyTx) Commit() error {
	if err := t.f.call(t.Tx.Commit); err != nil {
		_ = t.Tx.Rollback() // as when the process is gone
		return err
	}
	return nil
}

// TestKilledAtEveryStatement kills a process at each call that it makes of the database, from
// joining to giving back, before and after the call takes effect. The next process sends what
// is left: nothing is lost, and only what was under way arrives twice.
func TestKilledAtEveryStatement(t *testing.T) {
	db := engines[0].open(t)
	deaths := 20
	if testing.Short() {
		deaths = 8
	}
	for after := range deaths {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(after, " late ", late), func(t *testing.T) {
				t.Parallel()
				driverOfTest := &faulty{Driver: db.Driver(), after: -1}
				driverName := "faulty " + t.Name()
				sql.Register(driverName, driverOfTest)
				e := engines[0]
				healthy := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{100 * time.Millisecond}}, nil)
				healthy.set("a", "/")
				healthy.respond = func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Webhook-Id") == "bad" {
						w.WriteHeader(500)
					}
				}
				broken, err := sql.Open(driverName, healthy.dsn)
				if err != nil {
					t.Fatal(err)
				}
				defer broken.Close()
				dying, err := outbox.New(broken, e.dialect, healthy.sender, &outbox.Options{Prefix: healthy.prefix, Schedule: deliver.Schedule{100 * time.Millisecond}})
				if err != nil {
					t.Fatal(err)
				}
				healthy.enqueue("a", "e1", "m1", "bad", "m2")
				driverOfTest.mu.Lock()
				driverOfTest.after, driverOfTest.late = driverOfTest.calls+after, late
				driverOfTest.mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				_ = dying.Run(ctx)
				cancel()
				stop := healthy.run()
				healthy.await(3, 10*time.Second)
				healthy.awaitEnds(outbox.Delivered, 2)
				healthy.awaitEnds(outbox.GivenUp, 1)
				stop()
				for id, at := range healthy.arrivals {
					if most := map[string]int{"bad": 3}[id]; len(at) > max(most, 2) {
						t.Errorf("%s arrived %d times", id, len(at))
					}
				}
			})
		}
	}
}

// awaitEnds waits until n notifications are in a state.
func (f *fixture) awaitEnds(state outbox.State, n int) {
	f.t.Helper()
	var got int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		page, err := f.box.List(f.t.Context(), outbox.Query{State: state})
		if err != nil && !strings.Contains(err.Error(), "locked") {
			f.t.Fatal(err)
		}
		if got = len(page.Entries); got == n {
			return
		}
	}
	f.t.Fatalf("%d are %v, want %d", got, state, n)
}
