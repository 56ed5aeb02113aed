package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/etcdstore"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// feedReader polls a feed.
type feedReader struct {
	feed   cache.Feed
	within time.Duration // the time limit of a poll
	next   string
	resets int
	named  map[string]bool // since the last Reset
	from   int             // index in the ackLog of the first change after it
}

// readFeed polls until it succeeds. That's a Reset. No poll of the reader should fail, even if the
// machine is slow.
func readFeed(t *testing.T, feed cache.Feed) *feedReader { return readFeedWithin(t, testTimeout, feed) }

// readFeedHastily is readFeed for a feed that should fail soon.
func readFeedHastily(t *testing.T, feed cache.Feed) *feedReader {
	return readFeedWithin(t, time.Second, feed)
}

func readFeedWithin(t *testing.T, limit time.Duration, feed cache.Feed) *feedReader {
	t.Helper()
	reader := &feedReader{feed: feed, within: limit}
	if reader.catchUp(t); reader.resets != 1 {
		t.Fatalf("the first poll has %d Resets", reader.resets)
	}
	return reader
}

// catchUp polls until a poll succeeds.
func (reader *feedReader) catchUp(t *testing.T) {
	t.Helper()
	ctx := timeout(t)
	for err := reader.poll(ctx); err != nil; err = reader.poll(ctx) {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// expectBehind checks that a poll fails at its deadline. gRPC can notice the
// deadline before the context does.
func (reader *feedReader) expectBehind(t *testing.T) {
	t.Helper()
	err := reader.poll(timeout(t))
	if !errors.Is(err, context.DeadlineExceeded) && status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("got %v, want the deadline of the poll", err)
	}
}

func (reader *feedReader) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reader.within)
	defer cancel()
	changes, err := reader.feed.Changes(ctx, reader.next)
	if err != nil {
		return err
	}
	if changes.Reset {
		reader.resets++
		reader.named = make(map[string]bool)
	}
	for _, client := range changes.Clients {
		reader.named[client] = true
	}
	reader.next = changes.Next
	return nil
}

// ackLog lists the clients of acknowledged changes, in order.
type ackLog struct {
	mu      sync.Mutex
	clients []string
}

func (acks *ackLog) add(client string) {
	acks.mu.Lock()
	defer acks.mu.Unlock()
	acks.clients = append(acks.clients, client)
}

func (acks *ackLog) read() []string {
	acks.mu.Lock()
	defer acks.mu.Unlock()
	return slices.Clone(acks.clients)
}

// await waits until the log has count entries.
func (acks *ackLog) await(ctx context.Context, count int) error {
	for every := time.NewTicker(time.Millisecond); len(acks.read()) < count; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// missed polls once, and returns a client that the feed hasn't reported although its change
// was acknowledged before the poll.
func (reader *feedReader) missed(ctx context.Context, acks *ackLog) (string, error) {
	before, resets := acks.read(), reader.resets
	if err := reader.poll(ctx); err != nil {
		return "", err
	}
	if reader.resets > resets {
		reader.from = len(before)
	}
	for _, client := range before[reader.from:] {
		if !reader.named[client] {
			return client, nil
		}
	}
	return "", nil
}

// write lets each handle change count clients of its own, once each, and joins the errors.
func write(ctx context.Context, handles []*etcdstore.Store, count int, acks *ackLog) error {
	all := make([]error, len(handles)*count)
	var group sync.WaitGroup
	for h, st := range handles {
		group.Go(func() {
			for n := range count {
				client := fmt.Sprintf("client-%d-%d", h, n)
				if err := st.Apply(ctx, hooktest.Set(client, "e1", n)); err != nil {
					all[h*count+n] = err
				} else {
					acks.add(client)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(all...)
}

// feedNamesAll polls one handle's feed while the others write.
func feedNamesAll(t *testing.T, c *etcdcluster.Cluster) {
	o := newOptions()
	feed := open(t, c, o)
	writers := []*etcdstore.Store{open(t, c, o), open(t, c, o), open(t, c, o), feed}
	ctx, acks, reader := timeout(t), new(ackLog), readFeed(t, feed)
	written := make(chan error, 1)
	go func() { written <- write(ctx, writers, 150, acks) }()
	for over := false; !over; {
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			over = true // after one more poll
		default:
		}
		client, err := reader.missed(ctx, acks)
		if err != nil {
			t.Fatal(err)
		}
		if client != "" {
			t.Fatalf("%s was missed", client)
		}
	}
	if reader.resets != 1 || len(reader.named) != 600 {
		t.Errorf("%d Resets, %d named", reader.resets, len(reader.named))
	}
}

// gate is a watcher that starts no watch until open is closed. If open is nil, it never does.
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

// feedCompacted compacts the changes before the start of the watch.
func feedCompacted(t *testing.T, c *etcdcluster.Cluster) {
	client := c.Client(t)
	g := &gate{client.Watcher, make(chan struct{})}
	client.Watcher = g
	st := openOn(t, client, newOptions())
	reader := readFeedHastily(t, st)
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
	reader.expectBehind(t)
	found, err := client.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), found.Header.Revision); err != nil {
		t.Fatal(err)
	}
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 2))
	for n := range c.Size() { // the member that watches may not be the one that responded
		if err := c.Await(timeout(t), n); err != nil {
			t.Fatal(err)
		}
	}
	close(g.open)
	if reader.catchUp(t); reader.resets != 2 {
		t.Fatal("the first poll after a compaction is not a Reset")
	}
	hooktest.Apply(t, st, hooktest.Set("zeta", "e1", 3))
	reader.catchUp(t)
	if !reader.named["zeta"] || reader.resets != 2 {
		t.Errorf("%d Resets, named %v", reader.resets, reader.named)
	}
}

// feedHasOwnStream checks that the feed doesn't report its progress to a watch of the host,
// even if they share a wrapped watcher.
func feedHasOwnStream(t *testing.T, c *etcdcluster.Cluster) {
	client, key := c.Client(t), newPrefix()
	client.Watcher = struct{ clientv3.Watcher }{client.Watcher}
	ctx := timeout(t)
	watch := client.Watch(ctx, key)
	reader := readFeed(t, openOn(t, client, newOptions()))
	for n := range 3 {
		// The feed only reaches the revision of a foreign key through a report of progress.
		if _, err := client.Put(ctx, newPrefix(), ""); err != nil {
			t.Fatal(err)
		}
		if err := reader.poll(ctx); err != nil {
			t.Fatalf("poll %d: %v", n, err)
		}
	}
	if _, err := client.Put(ctx, key, ""); err != nil {
		t.Fatal(err)
	}
	if response := <-watch; len(response.Events) != 1 {
		t.Errorf("the host received a report of progress: %+v", response)
	}
}

func notifies(t *testing.T, c *etcdcluster.Cluster) {
	o := newOptions()
	st, other := open(t, c, o), open(t, c, o)
	ctx, cancel := context.WithCancel(timeout(t))
	notifications, ended := st.Notify(t.Context()), st.Notify(ctx)
	readFeed(t, st)
	hooktest.Apply(t, other, hooktest.Set("acme", "e1", 1))
	if _, ok := <-notifications; !ok {
		t.Error("closed before a notification")
	}
	cancel()
	for range ended {
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	for range notifications {
	}
	if _, ok := <-st.Notify(t.Context()); ok {
		t.Error("a notification of a closed store")
	}
	if _, err := st.Changes(t.Context(), ""); !errors.Is(err, etcdstore.ErrClosed) {
		t.Errorf("Changes after Close: %v", err)
	}
}
