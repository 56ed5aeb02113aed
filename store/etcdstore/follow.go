package etcdstore

import (
	"context"
	"crypto/rand"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

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
