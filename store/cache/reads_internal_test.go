package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// resolveFunc is a store whose Resolve is a function.
type resolveFunc func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)

func (f resolveFunc) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return f(ctx, client, entity)
}

func (resolveFunc) Apply(context.Context, webhookcfg.Change) error { return nil }

// TestNoClientIsLeft: clients that couldn't be read take no memory.
func TestNoClientIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(resolveFunc(func(ctx context.Context, client, _ string) (webhookcfg.Webhook, error) {
			switch client {
			case "fails":
				return webhookcfg.Webhook{}, errors.New("down")
			case "hangs":
				<-ctx.Done()
				return webhookcfg.Webhook{}, ctx.Err()
			}
			return webhookcfg.Webhook{}, nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, client := range []string{"fails", "hangs", "changes"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Resolve(ctx, client, "e1"); err == nil && client != "changes" {
				t.Errorf("%s: no error", client)
			}
			cancel()
		}
		if err := c.Store().Apply(t.Context(), webhookcfg.UnsetChange("changes", webhookcfg.All())); err != nil {
			t.Error(err)
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		c.reads.mu.Lock()
		defer c.reads.mu.Unlock() // before Close
		if names := c.entries.names(); len(names) > 1 || len(c.reads.byClient) > 0 || len(c.reads.changing) > 0 {
			t.Errorf("left: %q, %v, %v", names, c.reads.byClient, c.reads.changing)
		}
	})
}

// TestNoReadIsLeft: a read that waits for its turn ends when its callers have left,
// regardless of how their contexts ended, and never reaches the store.
func TestNoReadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c, err := New(resolveFunc(func(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
			calls.Add(1)
			<-ctx.Done()
			return webhookcfg.Webhook{}, ctx.Err()
		}), &Options{MaxReads: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		resolve := func(ctx context.Context, want error) {
			for n := range 300 {
				go func() {
					_, err := c.Resolve(ctx, fmt.Sprint("client ", n/10), fmt.Sprint("e", n/2))
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}()
			}
			synctest.Wait()
		}
		canceled, cancel := context.WithCancel(t.Context())
		resolve(canceled, context.Canceled)
		late, cancelLate := context.WithTimeout(t.Context(), time.Second)
		defer cancelLate()
		resolve(late, context.DeadlineExceeded)
		cancel()
		<-late.Done()
		synctest.Wait()
		left := 0
		c.reads.mu.Lock()
		for _, of := range c.reads.byClient {
			left += of.count
		}
		c.reads.mu.Unlock()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if waiting := bytes.Count(stacks, []byte("(*reads).fetch(")); left != 4 || waiting != 4 || calls.Load() != 4 {
			t.Errorf("%d reads in %d goroutines are left, %d calls of the store", left, waiting, calls.Load())
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		c.reads.mu.Lock()
		defer c.reads.mu.Unlock() // before Close
		if len(c.reads.byClient) > 0 || len(c.reads.turns) > 0 || calls.Load() != 4 {
			t.Errorf("%d clients and %d turns are left, %d calls of the store", len(c.reads.byClient), len(c.reads.turns), calls.Load())
		}
	})
}

// newReads returns the reads of a Cache with one entry per test, which can be joined for five
// nanoseconds.
func newReads() *reads {
	return &reads{
		entries:  newEntries(1<<20, 1),
		joinable: 5,
		turns:    make(chan struct{}, 1),
		byClient: map[string]*clientReads{},
		changing: map[string]int{},
	}
}

func (rs *reads) mustJoin(t *testing.T, entity string, called instant) *read {
	t.Helper()
	r, err := rs.join(key{"a", entity}, called)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLeaveOldRead: when a read ends that's too old to be joined, callers can still join the
// later one.
func TestLeaveOldRead(t *testing.T) {
	rs := newReads()
	var joined [3]*read
	for n, called := range []instant{1, 10, 11} {
		if n == 2 {
			rs.leave(joined[0])
		}
		joined[n] = rs.mustJoin(t, "e1", called)
	}
	if joined[0] == joined[1] || joined[1] != joined[2] {
		t.Errorf("the reads are %p", joined)
	}
}

// TestLeaveUnlinks: nobody joins a read that has ended, even while its client has another.
func TestLeaveUnlinks(t *testing.T) {
	rs := newReads()
	var joined [3]*read
	for n, entity := range []string{"other", "e1", "e1"} {
		joined[n] = rs.mustJoin(t, entity, 1)
		if n == 1 {
			rs.leave(joined[n])
		}
	}
	if joined[1] == joined[2] {
		t.Error("a read without callers was joined")
	}
}

// TestStartAfterEnd: no read starts after close, or without a caller.
func TestStartAfterEnd(t *testing.T) {
	rs := newReads()
	left := rs.mustJoin(t, "e1", 1)
	rs.leave(left)
	if err := rs.start(left, 2); !errors.Is(err, errUnwanted) {
		t.Errorf("without a caller: %v", err)
	}
	waiting := rs.mustJoin(t, "e1", 1)
	go rs.close()
	for closed := false; !closed; runtime.Gosched() {
		rs.mu.Lock()
		closed = rs.closed
		rs.mu.Unlock()
	}
	if err := rs.start(waiting, 2); !errors.Is(err, ErrClosed) {
		t.Errorf("start: %v", err)
	}
	if _, err := rs.join(key{"a", "e1"}, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("join: %v", err)
	}
	rs.leave(waiting)
}

// TestLaterReadStays: the result of a read doesn't replace that of a read that started later,
// whichever ends first.
func TestLaterReadStays(t *testing.T) {
	for name, entity := range map[string]string{"page": "", "entity": "e1"} {
		t.Run(name, func(t *testing.T) {
			kept := newEntries(1<<20, time.Hour)
			if entity != "" {
				kept.keep(key{"a", ""}, nil) // a client that is too large for a page
			}
			for _, started := range []instant{2, 1} {
				e := &entry{started: started, webhook: webhookcfg.Webhook{Since: time.Unix(int64(started), 0)}}
				kept.keep(key{"a", entity}, e)
			}
			got := kept.lookup("a", "e1", 2, 1)
			if got == nil || got.webhook.Since.Unix() != 2 {
				t.Errorf("the entry is %+v, want that of the later read", got)
			}
		})
	}
}
