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
	client *clientv3.Client
	keys   keys
	limit  int
	stall  time.Duration // after which a watch that does not get on is begun anew
	asked  chan struct{} // has a value after wanted grew
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	closed  bool
	stop    context.CancelFunc // ends the goroutine; nil before it began
	restart context.CancelFunc // ends what the goroutine follows now
	cluster uint64
	series  string
	history history
	passed  int64         // up to here the history is complete
	wanted  int64         // up to here a barrier wants it
	moving  time.Time     // when passed grew, or fell behind wanted
	moved   chan struct{} // closed and replaced when passed grew
	hints   map[chan struct{}]struct{}
}

func newWatch(client *clientv3.Client, k keys, o Options) *watch {
	return &watch{
		client:  client,
		keys:    k,
		limit:   o.History,
		stall:   o.BarrierTimeout / 2,
		asked:   make(chan struct{}, 1),
		done:    make(chan struct{}),
		restart: func() {}, // there is nothing yet to end
		moved:   make(chan struct{}),
		hints:   make(map[chan struct{}]struct{}),
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
	for hints := range w.hints {
		delete(w.hints, hints)
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

// reach waits until the watch has passed the revision that the cluster is at now.
// Before the cluster was asked, the watch had passed the revision before.
func (w *watch) reach(ctx context.Context, now moment, before int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.want(now, before)
	}
	for w.passed < now.revision && !w.closed {
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
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

// want notes that a barrier waits.
func (w *watch) want(now moment, before int64) {
	switch {
	case w.stop == nil:
		w.begin(now.cluster, now.revision)
		ctx, cancel := context.WithCancel(context.Background())
		w.stop = cancel
		go w.run(ctx)
	case now.cluster != w.cluster || now.revision < before:
		// A cluster never goes back, unless it was restored.
		w.begin(now.cluster, now.revision)
		w.restart()
	}
	if w.passed >= w.wanted {
		w.moving = time.Now()
	}
	w.wanted = max(w.wanted, now.revision)
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// begin begins a series after a revision.
func (w *watch) begin(cluster uint64, revision int64) {
	w.cluster, w.series = cluster, fmt.Sprintf("%x-%s", cluster, rand.Text())
	w.history = history{floor: revision, limit: w.limit}
	w.passed, w.wanted = revision, revision
	w.wakeBarriers()
}

// wakeBarriers has the barriers look again.
func (w *watch) wakeBarriers() {
	close(w.moved)
	w.moved = make(chan struct{})
}

// subscribe is not ok once there will be no more hints.
func (w *watch) subscribe(hints chan struct{}) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.hints[hints] = struct{}{}
	}
	return !w.closed
}

func (w *watch) unsubscribe(hints chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.hints[hints]; ok {
		delete(w.hints, hints)
		close(hints)
	}
}

const (
	// leastPause and mostPause are between one watch that failed and the next.
	leastPause = 20 * time.Millisecond
	mostPause  = time.Second
	// leastAsk and mostAsk are between one request for progress and the next.
	leastAsk = 2 * time.Millisecond
	mostAsk  = 100 * time.Millisecond
)

// run follows one watch after the other, until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	ctx = ownStream(ctx)
	wait := leastPause
	for ctx.Err() == nil {
		before := w.position()
		w.follow(ctx)
		if w.position() > before {
			wait = leastPause
		}
		sleep(ctx, wait)
		wait = min(2*wait, mostPause)
	}
}

// ownStream gives the watch a stream of its own, which a watcher picks by this
// metadata: on one that it shares with the host's watches, progress would wait for
// theirs, and be told to them too. A member that lost its leader ends the stream.
func ownStream(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "webhookcfg-watch", rand.Text())
}

// follow follows one watch for as long as it gets on.
func (w *watch) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	series, from := w.enter(cancel)
	watcher, release := w.newWatcher()
	defer release()
	opening := time.AfterFunc(w.stall, cancel)
	responses := watcher.Watch(ctx, string(w.keys), clientv3.WithPrefix(), clientv3.WithRev(from+1))
	opening.Stop()
	pause, ask := leastAsk, time.NewTimer(0)
	defer ask.Stop()
	for {
		select {
		case response, ok := <-responses:
			if !ok || !w.take(series, response) {
				return
			}
		case <-w.asked:
			pause = leastAsk
			ask.Reset(0)
		case <-ask.C:
			behind, stuck := w.lag()
			if stuck {
				return
			}
			if behind {
				askForProgress(ctx, watcher, pause)
				ask.Reset(pause)
				pause = min(2*pause, mostAsk)
			}
		}
	}
}

// enter returns what is to be followed. To cancel ends it.
func (w *watch) enter(cancel context.CancelFunc) (series string, from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart = cancel
	w.moving = time.Now()
	return w.series, w.passed
}

// lag tells whether barriers wait, and whether they have waited for so long that
// another connection is worth a try.
func (w *watch) lag() (behind, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind = w.passed < w.wanted
	return behind, behind && time.Since(w.moving) > w.stall
}

// askForProgress asks the member to say up to where it has sent everything. It
// does not answer where it lags itself, and the answer is lost where the stream
// breaks, so one asks until there is one. An error ends the responses too.
func askForProgress(ctx context.Context, watcher clientv3.Watcher, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = watcher.RequestProgress(ctx)
}

// take notes what a response says. It is false where the watch has ended.
func (w *watch) take(series string, response clientv3.WatchResponse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.series != series:
		return false
	case response.CompactRevision > 0:
		wanted := w.wanted
		w.begin(w.cluster, max(response.CompactRevision, w.passed))
		w.wanted = max(wanted, w.wanted)
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
		w.passed, w.moving = passed, time.Now()
		w.wakeBarriers()
	}
	if !events {
		return
	}
	for hints := range w.hints {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}
