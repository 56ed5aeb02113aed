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

// watch knows who changed under the prefix, and up to which revision it knows it
// all. One goroutine follows the changes; it begins with the first barrier.
//
// A series is a stretch of changes without a gap. Another one begins where the
// changes were compacted before they were read, or where the cluster is no longer
// what it was.
type watch struct {
	client         *clientv3.Client
	keys           keys
	limit          int
	stallTimeout   time.Duration // after which a watch that does not get on is begun anew
	progressWanted chan struct{} // has a value after target grew
	done           chan struct{} // closed when the goroutine has ended

	mu           sync.Mutex
	closed       bool
	stop         context.CancelFunc // ends the goroutine; nil before it began
	restart      context.CancelFunc // ends what the goroutine follows now
	cluster      uint64
	series       string
	history      history
	passed       int64         // up to here the history is complete
	target       int64         // up to here a barrier wants it
	lastProgress time.Time     // when passed grew, or fell behind target
	progressed   chan struct{} // closed and replaced when passed grew
	subscribers  map[chan struct{}]struct{}
}

func newWatch(client *clientv3.Client, k keys, o Options) *watch {
	return &watch{
		client:         client,
		keys:           k,
		limit:          o.History,
		stallTimeout:   o.BarrierTimeout / 2,
		progressWanted: make(chan struct{}, 1),
		done:           make(chan struct{}),
		restart:        func() {}, // there is nothing yet to end
		progressed:     make(chan struct{}),
		subscribers:    make(map[chan struct{}]struct{}),
	}
}

// newWatcher returns what a watch is begun with, and what ends it. A watcher keeps a
// stream whose beginning was never answered, and so the frozen path that it is on,
// for the next watch; hence each watch has a watcher of its own. Where the client's
// was wrapped, as package namespace of etcd does, it is used as it is.
func (w *watch) newWatcher() (watcher clientv3.Watcher, release func()) {
	watcher = clientv3.NewWatcher(w.client)
	if reflect.TypeOf(watcher) != reflect.TypeOf(w.client.Watcher) {
		return w.client.Watcher, func() {}
	}
	return watcher, func() { _ = watcher.Close() } // its error is that of the stream
}

func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	for hints := range w.subscribers {
		delete(w.subscribers, hints)
		close(hints)
	}
	w.wakeBarriers()
	stop := w.stop
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-w.done
	}
}

// position is up to where the history is complete.
func (w *watch) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed
}

// waitFor waits until the watch has passed the revision that the cluster is at now.
// Before the cluster was asked, the watch had passed the revision before.
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

// await notes that a barrier waits.
func (w *watch) await(now snapshot, before int64) {
	switch {
	case w.stop == nil:
		w.startSeries(now.cluster, now.revision)
		ctx, cancel := context.WithCancel(context.Background())
		w.stop = cancel
		go w.run(ctx)
	case now.cluster != w.cluster || now.revision < before:
		// A cluster never goes back, unless it was restored.
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

// startSeries begins a series after a revision.
func (w *watch) startSeries(cluster uint64, revision int64) {
	w.cluster, w.series = cluster, fmt.Sprintf("%x-%s", cluster, rand.Text())
	w.history = history{floor: revision, limit: w.limit}
	w.passed, w.target = revision, revision
	w.wakeBarriers()
}

// wakeBarriers has the barriers look again.
func (w *watch) wakeBarriers() {
	close(w.progressed)
	w.progressed = make(chan struct{})
}

// subscribe is not ok once there will be no more hints.
func (w *watch) subscribe(hints chan struct{}) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.subscribers[hints] = struct{}{}
	}
	return !w.closed
}

func (w *watch) unsubscribe(hints chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.subscribers[hints]; ok {
		delete(w.subscribers, hints)
		close(hints)
	}
}

const (
	// minPause and maxPause are between one watch that failed and the next.
	minPause = 20 * time.Millisecond
	maxPause = time.Second
	// minProgressInterval and maxProgressInterval are between one request for progress and the next.
	minProgressInterval = 2 * time.Millisecond
	maxProgressInterval = 100 * time.Millisecond
)

// run follows one watch after the other, until ctx ends.
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

// withOwnStream gives the watch a stream of its own, which a watcher picks by this
// metadata: on one that it shares with the host's watches, progress would wait for
// theirs, and be told to them too. A member that lost its leader ends the stream.
func withOwnStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "webhookcfg-watch", rand.Text())
}

// follow follows one watch for as long as it gets on.
func (w *watch) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	series, from := w.startFollowing(cancel)
	watcher, release := w.newWatcher()
	defer release()
	opening := time.AfterFunc(w.stallTimeout, cancel)
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

// startFollowing returns what is to be followed. To cancel ends it.
func (w *watch) startFollowing(cancel context.CancelFunc) (series string, from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart = cancel
	w.lastProgress = time.Now()
	return w.series, w.passed
}

// lag tells whether barriers wait, and whether they have waited for so long that
// another connection is worth a try.
func (w *watch) lag() (behind, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind = w.passed < w.target
	return behind, behind && time.Since(w.lastProgress) > w.stallTimeout
}

// requestProgress asks the member to say up to where it has sent everything. It
// does not answer where it lags itself, and the answer is lost where the stream
// breaks, so one asks until there is one. An error ends the responses too.
func requestProgress(ctx context.Context, watcher clientv3.Watcher, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_ = watcher.RequestProgress(ctx)
}

// receive notes what a response says. It is false where the watch has ended.
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
			continue // said again, by a member that lagged
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

// advance says that the history is complete up to a revision. The header of a
// response with events may name a later one, whose events are yet to come.
func (w *watch) advance(passed int64, events bool) {
	if passed > w.passed {
		w.passed, w.lastProgress = passed, time.Now()
		w.wakeBarriers()
	}
	if !events {
		return
	}
	for hints := range w.subscribers {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}
