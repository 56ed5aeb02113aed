package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/cache"
)

const (
	barrierTimeout = 2 * time.Second // of a call without a deadline
	maxHistory     = 1 << 16         // changes
)

var errBehind = errors.New("etcdstore: the watch didn't catch up with the cluster in time")

// Changes implements [cache.Feed]. To be sure that no change is missing, it asks a majority
// for the revision of the cluster, and waits until the watch has passed that revision. The
// first call starts the watch, which runs until [Store.Close].
//
// You get an error if that takes longer than ctx allows, or 2 seconds if ctx has no deadline. For
// instance, a watch on a frozen network path delivers nothing, not even an error. The store
// then restarts the watch without a gap, on another connection if there is one.
//
// You get a Reset on the first call, if the history since the cursor was compacted, or has more
// than 65,536 changes, which take about 10 MB, and if the store notices that the cluster went back
// in time.
func (s *Store) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if err := s.usable(ctx); err != nil {
		return cache.Changes{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, barrierTimeout)
		defer cancel()
	}
	passed := s.watch.position()
	now, err := s.read(ctx, clientv3.OpGet(string(s.keys), clientv3.WithCountOnly()))
	if err != nil {
		return cache.Changes{}, err
	}
	if err := s.watch.waitFor(ctx, now, passed); err != nil {
		return cache.Changes{}, err
	}
	return s.watch.changes(since, now.revision), nil
}

// Notify implements [cache.Notifier]. You get notifications once [Store.Changes] was called.
// [Store.Close] closes the channel too.
func (s *Store) Notify(ctx context.Context) <-chan struct{} {
	notifications := make(chan struct{}, 1)
	if !s.watch.subscribe(notifications) {
		close(notifications)
		return notifications
	}
	context.AfterFunc(ctx, func() { s.watch.unsubscribe(notifications) })
	return notifications
}

// changes returns the changes after a cursor. Call it when the barrier has reached the
// revision. If the history has been truncated beyond it meanwhile, the next call returns
// another Reset.
func (w *watch) changes(since string, revision int64) cache.Changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := fmt.Sprint(w.series, ".", revision)
	if series, from := parseCursor(since); series == w.series && from <= revision {
		if clients, ok := w.history.since(from); ok {
			return cache.Changes{Clients: clients, Next: next}
		}
	}
	return cache.Changes{Reset: true, Next: next}
}

// parseCursor returns the series "" if the cursor is invalid.
func parseCursor(cursor string) (series string, revision int64) {
	dot := strings.LastIndexByte(cursor, '.')
	if dot < 0 {
		return "", 0
	}
	revision, err := strconv.ParseInt(cursor[dot+1:], 10, 64)
	if err != nil {
		return "", 0
	}
	return cursor[:dot], revision
}

// history holds the latest changes, in order: all those after the revision floor.
type history struct {
	floor   int64
	limit   int
	changes []changed
}

type changed struct {
	revision int64
	client   string
}

// add appends a change of a client. At the limit, it evicts the older half.
func (h *history) add(revision int64, client string) {
	if last := len(h.changes) - 1; last >= 0 && h.changes[last].client == client {
		h.changes[last].revision = revision
		return
	}
	if len(h.changes) >= h.limit {
		h.evict((h.limit + 1) / 2)
	}
	h.changes = append(h.changes, changed{revision, client})
}

// evict removes the oldest changes.
func (h *history) evict(count int) {
	h.floor = h.changes[count-1].revision
	h.changes = slices.Delete(h.changes, 0, count)
}

// since returns the clients that changed after a revision, each once. ok is false if some may
// have been evicted.
func (h *history) since(revision int64) (clients []string, ok bool) {
	if revision < h.floor {
		return nil, false
	}
	first := sort.Search(len(h.changes), func(n int) bool { return h.changes[n].revision > revision })
	for _, c := range h.changes[first:] {
		clients = append(clients, c.client)
	}
	slices.Sort(clients)
	return slices.Compact(clients), true
}
