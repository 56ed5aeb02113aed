package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// crashes kills a busy server and starts it again.
func (e Engine) crashes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no server is killed")
	}
	server := e.Dedicated(t)
	server.SkipIfExternal(t)
	t.Run("histories", func(t *testing.T) {
		linearizable.Check(t, crashing(killing(server)), func(t testing.TB) []linearizable.Store { return e.replicas(t, server.DSN()) })
	})
	t.Run("acknowledged", func(t *testing.T) {
		if err := e.killWriters(t, killing(server)); err != nil {
			t.Error(err)
		}
	})
}

// crash is a way to kill the server behind a DSN and to recover it.
type crash struct {
	dsn           string
	kill, recover func() error
}

func killing(server *engine.Server) crash { return crash{server.DSN(), server.Kill, server.Restart} }

// crashing kills the server in the middle of each history.
func crashing(c crash) linearizable.Workload {
	return linearizable.Workload{
		Clients: 2, Goroutines: []int{6}, Operations: 60, Histories: 2,
		Fault: func() error { return errors.Join(c.kill(), c.recover()) },
	}
}

// writer sets e1 of its own client to one URL after another.
type writer struct {
	client string
	acked  int   // number of the last acknowledged change
	failed error // error of the next one
}

// killWriters kills the server while writers are active. When it has recovered, killWriters
// compares its data with the acknowledged changes.
func (e Engine) killWriters(t *testing.T, c crash) error {
	t.Helper()
	db := e.Open(t, c.dsn)
	st := e.store(t, db, prefix(t, db))
	migrate(t, st)
	writers := make([]writer, 8)
	var (
		made   atomic.Int64
		killed atomic.Bool
		group  errgroup.Group
	)
	enough := make(chan struct{})
	for i := range writers {
		writers[i].client = "writer-" + strconv.Itoa(i)
		group.Go(func() error {
			for writers[i].write(t.Context(), st) && !killed.Load() {
				if made.Add(1) == int64(50*len(writers)) {
					close(enough)
				}
			}
			return nil
		})
	}
	<-enough
	err := c.kill()
	// Each writer makes one more change, which fails.
	killed.Store(true)
	if err := errors.Join(err, group.Wait(), c.recover(), reconnected(t, db)); err != nil {
		t.Fatal(err)
	}
	for _, w := range writers {
		if err := w.check(t.Context(), st); err != nil {
			return err
		}
	}
	return nil
}

// write makes the next change and reports whether it was acknowledged.
func (w *writer) write(ctx context.Context, st *sqlstore.Store) bool {
	next := w.acked + 1
	c := webhookcfg.SetChange(w.client, webhookcfg.Entity("e1"), egress.NewURL(fmt.Sprint("https://h.example.com/", next)))
	c.Time = time.Unix(int64(next), 0)
	if w.failed = st.Apply(ctx, c); w.failed == nil {
		w.acked = next
	}
	return w.failed == nil
}

func (w *writer) check(ctx context.Context, st *sqlstore.Store) error {
	hook, err := st.Resolve(ctx, w.client, "e1")
	if err != nil {
		return err
	}
	found := 0
	if hook.Source != webhookcfg.SourceNone {
		found = int(hook.Since.Unix())
	}
	switch {
	case found == w.acked:
		return nil
	case found == w.acked+1 && errors.Is(w.failed, sqlstore.ErrOutcomeUnknown):
		return nil
	}
	return fmt.Errorf("%s: change %d acknowledged, then %v; the database has change %d", w.client, w.acked, w.failed, found)
}
