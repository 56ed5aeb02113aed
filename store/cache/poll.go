package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// poller polls a store for changes, and drops the clients that changed.
type poller struct {
	reads    *reads
	figures  *figures
	clock    clock
	maxStale time.Duration
	every    time.Duration
	logger   *slog.Logger
	notifier Notifier     // can be nil
	last     atomic.Int64 // when the last successful poll started, as an instant
	hanging  atomic.Bool  // the last query of a poll exceeded its time limit

	wanted  chan struct{} // holds a value if somebody waits for the next poll
	stopped chan struct{} // closed when there are no more polls

	mu    sync.Mutex
	ended chan struct{} // closed when the next poll ends
}

// poll asks the store what changed, and drops the entries that did, unless they're dropped
// already.
type poll func(ctx context.Context) error

// pollsOf returns the polls that a store's interfaces allow, the best one first.
func (p *poller) pollsOf(st webhookcfg.Store) (polls []poll) {
	if feed, ok := st.(Feed); ok {
		cursor := ""
		polls = append(polls, func(ctx context.Context) error { return p.pollFeed(ctx, feed, &cursor) })
	}
	if versioner, ok := st.(Versioner); ok {
		supported := false
		polls = append(polls, func(ctx context.Context) error { return p.pollVersions(ctx, versioner, &supported) })
	}
	return polls
}

// run polls until ctx ends. If the store doesn't support a poll, run switches to the next one
// for good, and returns after the last.
func (p *poller) run(ctx context.Context, polls []poll) {
	defer close(p.stopped)
	var notifications <-chan struct{}
	if p.notifier != nil && len(polls) > 0 {
		notifications = p.notifier.Notify(ctx)
	}
	failing := false
	for len(polls) > 0 && ctx.Err() == nil {
		started := p.clock.now()
		err := recoverPanic(ctx, polls[0])
		if errors.Is(err, errUnsupported) {
			polls = polls[1:]
			p.logger.Info("cache: the store doesn't support this kind of poll; without others, entries are valid only for MaxStale", "error", redact.PrintableError(err), "others", len(polls))
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.figures.polls.Add(1)
		if err == nil {
			p.last.Store(int64(started))
		} else {
			p.figures.fail(&p.figures.failedPolls, err)
		}
		failing = p.report(failing, err)
		p.announce()
		if more := p.rest(ctx, started, notifications); !more {
			notifications = nil
		}
	}
}

// announce tells awaitPoll that a poll has ended.
func (p *poller) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = make(chan struct{})
}

// awaitPoll waits for the end of a poll that starts after the call, and makes it start at
// once. It doesn't wait if the store isn't polled.
func (p *poller) awaitPoll(ctx context.Context) error {
	for range 2 { // the first one can have started before the call
		p.mu.Lock()
		ended := p.ended
		p.mu.Unlock()
		select {
		case p.wanted <- struct{}{}:
		default:
		}
		select {
		case <-ended:
		case <-p.stopped:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// rest returns when it's time for the poll after the one that started at the given instant,
// or when ctx ends. Notifications have to wait for a tenth of the interval. It returns false
// once there can't be more of them.
func (p *poller) rest(ctx context.Context, started instant, notifications <-chan struct{}) (more bool) {
	passed := p.clock.now() - started
	early, due := time.After(p.every/10-passed), time.After(p.every-passed)
	var notified <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return true
		case <-p.wanted:
			return true
		case <-due:
			return true
		case <-early:
			notified = notifications
		case _, more := <-notified:
			return more
		}
	}
}

// report logs the first failure, and the first success after it. It returns whether polls
// fail.
func (p *poller) report(failing bool, err error) bool {
	switch {
	case err != nil && !failing:
		p.logger.Warn("cache: can't poll the store for changes; until it works again, entries are valid only for the bound, and then read again", "error", redact.PrintableError(err), "bound", p.maxStale)
	case err == nil && failing:
		p.logger.Info("cache: polls of the store for changes work again")
	}
	return err != nil
}

// recoverPanic turns a panic of the store into an error, for goroutines where no caller could
// recover it.
func recoverPanic(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("cache: panic in the store: %s\n%s", redact.Panic(value), debug.Stack())
		}
	}()
	return work(ctx)
}

// limited makes one query of a poll and limits its time. With a longer limit, entries would
// expire between two successful polls.
func (p *poller) limited(ctx context.Context, query func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.maxStale/2)
	defer cancel()
	err := query(ctx)
	p.hanging.Store(err != nil && ctx.Err() != nil)
	return err
}

var errUnsupported = errors.New("cache: not supported by the store")

// pollError returns the error of a poll. Once a poll has succeeded, [errors.ErrUnsupported]
// no longer means that the store can't be polled: an EOPNOTSUPP of the network matches it
// too.
func pollError(err error, supported bool) error {
	if !supported && errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errUnsupported, err)
	}
	return err
}

func (p *poller) pollFeed(ctx context.Context, feed Feed, cursor *string) error {
	return p.limited(ctx, func(ctx context.Context) error {
		started := p.clock.now()
		changes, err := feed.Changes(ctx, *cursor)
		if err != nil {
			return pollError(err, *cursor != "")
		}
		p.reads.apply(changes, started)
		*cursor = changes.Next
		return nil
	})
}

// versionsPerCall is the most clients in one call of a Versioner. Package sqlstore asks for
// as many in one query.
const versionsPerCall = 256

var errVersionCount = errors.New("cache: the store's Versions must return one version for each client, but the numbers differ")

func (p *poller) pollVersions(ctx context.Context, versioner Versioner, supported *bool) error {
	for clients := range slices.Chunk(p.reads.entries.names(), versionsPerCall) {
		if err := p.pollChunk(ctx, versioner, clients); err != nil {
			return pollError(err, *supported)
		}
		*supported = true
	}
	return nil
}

func (p *poller) pollChunk(ctx context.Context, versioner Versioner, clients []string) error {
	return p.limited(ctx, func(ctx context.Context) error {
		started := p.clock.now()
		versions, err := versioner.Versions(ctx, clients)
		if err != nil {
			return err
		}
		if len(versions) != len(clients) {
			return errVersionCount
		}
		for i, client := range clients {
			p.reads.check(client, versions[i], started)
		}
		return nil
	})
}
