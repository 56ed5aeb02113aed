package etcdstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// watch knows which clients under the prefix changed, up to a revision. One goroutine
// receives the changes. The first barrier starts it.
//
// A series is a sequence of changes without a gap. A new one starts if changes were compacted
// before we received them, or if the cluster was replaced or restored.
type watch struct {
	client         *clientv3.Client
	keys           keys
	progressWanted chan struct{} // gets a value after target grew
	done           chan struct{} // closed when the goroutine has ended

	mu           sync.Mutex
	closed       bool
	stop         context.CancelFunc // ends the goroutine; nil before it starts
	restart      context.CancelFunc // ends the current watch of the goroutine
	cluster      uint64
	series       string
	history      history
	passed       int64         // the history is complete up to this revision
	target       int64         // barriers wait for this revision
	lastProgress time.Time     // when passed grew, or fell behind target
	progressed   chan struct{} // closed and replaced when passed grew
	subscribers  map[chan struct{}]struct{}
}

// stallTimeout is how long a watch can be without progress while a barrier waits. Then it's
// restarted. It's less than barrierTimeout, so that a call can still succeed after that.
const stallTimeout = time.Second

func newWatch(client *clientv3.Client, k keys) *watch {
	return &watch{
		client:         client,
		keys:           k,
		progressWanted: make(chan struct{}, 1),
		done:           make(chan struct{}),
		restart:        func() {}, // no watch yet
		progressed:     make(chan struct{}),
		subscribers:    make(map[chan struct{}]struct{}),
	}
}

// newWatcher returns a watcher for one watch, and a function that releases it. If the
// creation of a stream was never acknowledged, a watcher reuses it for the next watch, even
// on a frozen network path. So each watch gets its own watcher. If the client's watcher is
// wrapped, as etcd's package namespace does, we use that one.
func (w *watch) newWatcher() (watcher clientv3.Watcher, release func()) {
	watcher = clientv3.NewWatcher(w.client)
	if reflect.TypeOf(watcher) != reflect.TypeOf(w.client.Watcher) {
		return w.client.Watcher, func() {}
	}
	return watcher, func() { _ = watcher.Close() } // its error is the error of the stream
}

func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	for channel := range w.subscribers {
		delete(w.subscribers, channel)
		close(channel)
	}
	w.wakeBarriers()
	stop := w.stop
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-w.done
	}
}

// position returns the revision up to which the history is complete.
func (w *watch) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed
}

// waitFor is the barrier: it waits until the watch has passed the cluster's current revision.
// before is the revision that the watch had passed before the cluster was read.
func (w *watch) waitFor(ctx context.Context, now snapshot, before int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.await(now, before)
	}
	for w.passed < now.revision && !w.closed {
		progressed := w.progressed
		w.mu.Unlock()
		select {
		case <-progressed:
		case <-ctx.Done():
		}
		w.mu.Lock()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", errBehind, err)
		}
	}
	if w.closed {
		return ErrClosed
	}
	return nil
}

// await registers a barrier, and starts the watch if necessary.
func (w *watch) await(now snapshot, before int64) {
	switch {
	case w.stop == nil:
		w.startSeries(now.cluster, now.revision)
		ctx, cancel := context.WithCancel(context.Background())
		w.stop = cancel
		go w.run(ctx)
	case now.cluster != w.cluster || now.revision < before:
		// A cluster only goes back if it was restored.
		w.startSeries(now.cluster, now.revision)
		w.restart()
	}
	if w.passed >= w.target {
		w.lastProgress = time.Now()
	}
	w.target = max(w.target, now.revision)
	select {
	case w.progressWanted <- struct{}{}:
	default:
	}
}

// startSeries starts a series after a revision.
func (w *watch) startSeries(cluster uint64, revision int64) {
	w.cluster, w.series = cluster, fmt.Sprintf("%x-%s", cluster, rand.Text())
	w.history = history{floor: revision, limit: maxHistory}
	w.passed, w.target = revision, revision
	w.wakeBarriers()
}

// wakeBarriers makes the barriers check again.
func (w *watch) wakeBarriers() {
	close(w.progressed)
	w.progressed = make(chan struct{})
}

// subscribe adds a channel. ok is false if the watch is closed.
func (w *watch) subscribe(channel chan struct{}) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.subscribers[channel] = struct{}{}
	}
	return !w.closed
}

func (w *watch) unsubscribe(channel chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.subscribers[channel]; ok {
		delete(w.subscribers, channel)
		close(channel)
	}
}

const (
	// minPause and maxPause bound the pause between a failed watch and the next.
	minPause = 20 * time.Millisecond
	maxPause = time.Second
	// minProgressInterval and maxProgressInterval bound the pause between requests for
	// progress.
	minProgressInterval = 2 * time.Millisecond
	maxProgressInterval = 100 * time.Millisecond
)

// run receives from one watch after another, until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	ctx = withOwnStream(ctx)
	wait := minPause
	for ctx.Err() == nil {
		before := w.position()
		w.follow(ctx)
		if w.position() > before {
			wait = minPause
		}
		sleep(ctx, wait)
		wait = min(2*wait, maxPause)
	}
}

// withOwnStream gives the watch a stream of its own. A watcher selects the stream by this
// metadata. On a stream that it shares with the host's watches, progress would wait for them
// and be reported to them too. The metadata doesn't demand a leader: if there's none, the
// barrier restarts the watch, as it does without progress for any other reason.
func withOwnStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "webhookcfg-watch", rand.Text())
}

// follow receives from one watch as long as it makes progress.
func (w *watch) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	series, from := w.startFollowing(cancel)
	watcher, release := w.newWatcher()
	defer release()
	opening := time.AfterFunc(stallTimeout, cancel)
	responses := watcher.Watch(ctx, string(w.keys), clientv3.WithPrefix(), clientv3.WithRev(from+1))
	opening.Stop()
	pause, ask := minProgressInterval, time.NewTimer(0)
	defer ask.Stop()
	for {
		select {
		case response, ok := <-responses:
			if !ok || !w.receive(series, response) {
				return
			}
		case <-w.progressWanted:
			pause = minProgressInterval
			ask.Reset(0)
		case <-ask.C:
			behind, stuck := w.lag()
			if stuck {
				return
			}
			if behind {
				requestProgress(ctx, watcher, pause)
				ask.Reset(pause)
				pause = min(2*pause, maxProgressInterval)
			}
		}
	}
}

// startFollowing returns the series and the revision from which to continue. The watch
// ends when cancel is called.
func (w *watch) startFollowing(cancel context.CancelFunc) (series string, from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart = cancel
	w.lastProgress = time.Now()
	return w.series, w.passed
}

// lag reports whether barriers are waiting, and whether they've waited so long that the watch
// should restart, on another connection if there is one.
func (w *watch) lag() (behind, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind = w.passed < w.target
	return behind, behind && time.Since(w.lastProgress) > stallTimeout
}

// requestProgress asks the member up to which revision it has sent all events. It asks
// repeatedly, because a lagging member doesn't respond and a broken stream loses the
// response. Errors need no handling, since they end the responses too.
func requestProgress(ctx context.Context, watcher clientv3.Watcher, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_ = watcher.RequestProgress(ctx)
}

// receive adds a response to the history. It returns false if the watch has ended.
func (w *watch) receive(series string, response clientv3.WatchResponse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.series != series:
		return false
	case response.CompactRevision > 0:
		target := w.target
		w.startSeries(w.cluster, max(response.CompactRevision, w.passed))
		w.target = max(target, w.target)
		return false
	case response.Err() != nil:
		return false
	}
	passed := w.passed
	for _, event := range response.Events {
		if event.Kv.ModRevision <= w.passed {
			continue // repeated by a lagging member
		}
		if client, _, ok := w.keys.parse(event.Kv.Key); ok {
			w.history.add(event.Kv.ModRevision, client)
		}
		passed = event.Kv.ModRevision
	}
	if response.IsProgressNotify() {
		passed = max(passed, response.Header.Revision)
	}
	w.advance(passed, len(response.Events) > 0)
	return true
}

// advance marks the history as complete up to a revision. Don't pass the revision in the
// header of a response with events: events before it may still be on their way.
func (w *watch) advance(passed int64, events bool) {
	if passed > w.passed {
		w.passed, w.lastProgress = passed, time.Now()
		w.wakeBarriers()
	}
	if !events {
		return
	}
	for channel := range w.subscribers {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}
