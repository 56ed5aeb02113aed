package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/etcdstore"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// chain follows a feed.
type chain struct {
	feed   cache.Feed
	next   string
	resets int
	named  map[string]bool // since the last Reset
	from   int             // where in the journal the changes after it begin
}

// begin makes the first call, which is a Reset.
func begin(t *testing.T, feed cache.Feed) *chain {
	t.Helper()
	ch := &chain{feed: feed}
	if err := ch.call(soon(t)); err != nil || ch.resets != 1 {
		t.Fatalf("the first call has %d Resets: %v", ch.resets, err)
	}
	return ch
}

func (ch *chain) call(ctx context.Context) error {
	changes, err := ch.feed.Changes(ctx, ch.next)
	if err != nil {
		return err
	}
	if changes.Reset {
		ch.resets++
		ch.named = make(map[string]bool)
	}
	for _, client := range changes.Clients {
		ch.named[client] = true
	}
	ch.next = changes.Next
	return nil
}

// journal is the clients whose change was answered, in the order of the answers.
type journal struct {
	mu      sync.Mutex
	clients []string
}

func (j *journal) add(client string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clients = append(j.clients, client)
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.clients)
}

// await waits until there are so many.
func (j *journal) await(ctx context.Context, count int) error {
	for every := time.NewTicker(time.Millisecond); len(j.read()) < count; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// missed calls once, and returns a client whose change was answered before the
// call and that the chain has not named.
func (ch *chain) missed(ctx context.Context, j *journal) (string, error) {
	before, resets := j.read(), ch.resets
	if err := ch.call(ctx); err != nil {
		return "", err
	}
	if ch.resets > resets {
		ch.from = len(before)
	}
	for _, client := range before[ch.from:] {
		if !ch.named[client] {
			return client, nil
		}
	}
	return "", nil
}

// write has each of the handles change clients of their own, each client once,
// and returns what failed.
func write(ctx context.Context, handles []*etcdstore.Store, count int, j *journal) error {
	all := make([]error, len(handles)*count)
	var group sync.WaitGroup
	for h, st := range handles {
		group.Go(func() {
			for n := range count {
				client := fmt.Sprintf("client-%d-%d", h, n)
				if err := st.Apply(ctx, set(client, "e1", n)); err != nil {
					all[h*count+n] = err
				} else {
					j.add(client)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(all...)
}

// watchWriters follows the feed of one handle while others write, and returns a
// client that it missed.
func watchWriters(t *testing.T, c *etcdcluster.Cluster, breaking func(*clientv3.Client)) string {
	o := &etcdstore.Options{Prefix: newPrefix()}
	feed := open(t, c, o, breaking)
	writers := []*etcdstore.Store{open(t, c, o, nil), open(t, c, o, nil), open(t, c, o, nil), feed}
	ctx, j, ch := soon(t), new(journal), begin(t, feed)
	written := make(chan error, 1)
	go func() { written <- write(ctx, writers, 150, j) }()
	for over := false; !over; {
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			over = true // after one more call
		default:
		}
		client, err := ch.missed(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		if client != "" {
			return client
		}
	}
	if ch.resets != 1 || len(ch.named) != 600 {
		t.Errorf("%d Resets, %d named", ch.resets, len(ch.named))
	}
	return ""
}

func feedNamesAll(t *testing.T, c *etcdcluster.Cluster) {
	if client := watchWriters(t, c, nil); client != "" {
		t.Errorf("%s was missed", client)
	}
}

func feedWithoutBarrier(t *testing.T, c *etcdcluster.Cluster) {
	if client := watchWriters(t, c, noBarrier); client == "" {
		t.Error("a feed without a barrier missed nothing")
	}
}

// gate is a watcher that begins no watch while it is closed.
type gate struct {
	clientv3.Watcher
	open chan struct{}
}

func (g *gate) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	select {
	case <-g.open:
		return g.Watcher.Watch(ctx, key, options...)
	case <-ctx.Done():
		never := make(chan clientv3.WatchResponse)
		close(never)
		return never
	}
}

// feedCompacted: what changed before the watch began is compacted.
func feedCompacted(t *testing.T, c *etcdcluster.Cluster) {
	client := c.Client(t)
	g := &gate{client.Watcher, make(chan struct{})}
	client.Watcher = g
	st := openOn(t, client, &etcdstore.Options{Prefix: newPrefix(), BarrierTimeout: time.Second})
	ch := begin(t, st)
	apply(t, st, set("acme", "e1", 1))
	apply(t, st, set("acme", "e1", 1))
	if err := ch.call(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the deadline of the barrier", err)
	}
	found, err := client.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), found.Header.Revision); err != nil {
		t.Fatal(err)
	}
	apply(t, st, set("acme", "e1", 2))
	close(g.open)
	for ch.resets == 1 && t.Context().Err() == nil {
		if err := ch.call(soon(t)); err == nil && ch.resets == 1 {
			t.Fatal("the answer after a compaction is not a Reset")
		}
	}
	apply(t, st, set("zeta", "e1", 3))
	if err := ch.call(soon(t)); err != nil || !ch.named["zeta"] || ch.resets != 2 {
		t.Errorf("%d Resets, named %v: %v", ch.resets, ch.named, err)
	}
}

func feedTooMany(t *testing.T, c *etcdcluster.Cluster) {
	st := open(t, c, &etcdstore.Options{Prefix: newPrefix(), History: 8}, nil)
	ch := begin(t, st)
	for n := range 8 {
		apply(t, st, set(fmt.Sprint("client-", n), "e1", n))
	}
	if err := ch.call(soon(t)); err != nil || ch.resets != 1 || len(ch.named) != 8 {
		t.Errorf("%d Resets, %d named: %v", ch.resets, len(ch.named), err)
	}
	for n := range 20 {
		apply(t, st, set(fmt.Sprint("client-", n), "e1", n))
	}
	if err := ch.call(soon(t)); err != nil || ch.resets != 2 {
		t.Errorf("%d Resets: %v", ch.resets, err)
	}
}

func notifies(t *testing.T, c *etcdcluster.Cluster) {
	o := &etcdstore.Options{Prefix: newPrefix()}
	st, other := open(t, c, o, nil), open(t, c, o, nil)
	ctx, cancel := context.WithCancel(soon(t))
	hints, ended := st.Notify(t.Context()), st.Notify(ctx)
	begin(t, st)
	apply(t, other, set("acme", "e1", 1))
	if _, ok := <-hints; !ok {
		t.Error("closed before a hint")
	}
	cancel()
	for range ended {
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	for range hints {
	}
	if _, ok := <-st.Notify(t.Context()); ok {
		t.Error("a hint of a store that is closed")
	}
	if _, err := st.Changes(t.Context(), ""); !errors.Is(err, etcdstore.ErrClosed) {
		t.Errorf("Changes after Close: %v", err)
	}
}
