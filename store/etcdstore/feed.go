package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
)

var errBehind = errors.New("etcdstore: the watch is behind the cluster")

// Changes implements [webhookcfg.Feed]. It asks the majority for the revision of
// the cluster, and waits until the watch has passed it. It fails if that takes longer
// than [Options.BarrierTimeout] or ctx allows. The first call begins the watch, which
// goes on until [Store.Close].
func (s *Store) Changes(ctx context.Context, since string) (webhookcfg.Changes, error) {
	if err := s.usable(ctx); err != nil {
		return webhookcfg.Changes{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.barrier)
	defer cancel()
	passed := s.watch.position()
	now, err := s.read(ctx, clientv3.OpGet(string(s.keys), clientv3.WithCountOnly()))
	if err != nil {
		return webhookcfg.Changes{}, err
	}
	if err := s.watch.reach(ctx, now, passed); err != nil {
		return webhookcfg.Changes{}, err
	}
	return s.watch.changes(since, now.revision), nil
}

// Wake implements [webhookcfg.Waker]. There are hints once [Store.Changes] was
// called for the first time. [Store.Close] closes the channel too.
func (s *Store) Wake(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	if !s.watch.subscribe(hints) {
		close(hints)
		return hints
	}
	context.AfterFunc(ctx, func() { s.watch.unsubscribe(hints) })
	return hints
}

// changes answers what changed after a cursor, once a barrier reached the revision.
// If the history begins after it by now, the next answer will be a Reset again.
func (w *watch) changes(since string, revision int64) webhookcfg.Changes {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := fmt.Sprint(w.series, ".", revision)
	if series, from := parseCursor(since); series == w.series && from <= revision {
		if clients, ok := w.history.since(from); ok {
			return webhookcfg.Changes{Clients: clients, Next: next}
		}
	}
	return webhookcfg.Changes{Reset: true, Next: next}
}

// parseCursor returns the series "" for what is no cursor.
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
