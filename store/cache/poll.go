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
	notifier Notifier     // nil if there is none
	last     atomic.Int64 // the instant at which the last successful poll started

	stopped chan struct{} // closed when there are no more polls

	mu    sync.Mutex
	ended chan struct{} // closed when the next poll ends
}

// poll drops the entries that changed in the store, as far as that is not known yet.
type poll func(ctx context.Context) error

// pollsOf returns the polls for which a store has an interface, the preferred one first.
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

// run polls until ctx ends. A poll that the store does not support is replaced by the next
// one for good; after the last there is nothing to do.
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
			p.logger.Info("cache: the store does not support a way of polling for changes", "error", err, "others", len(polls))
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
		p.sleep(ctx, started+p.every/10, nil) // notifications wait until then
		if more := p.sleep(ctx, started+p.every, notifications); !more {
			notifications = nil
		}
	}
}

// announce ends all calls of awaitPoll.
func (p *poller) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = make(chan struct{})
}

// awaitPoll waits until a poll that starts after the call has ended, unless none will.
func (p *poller) awaitPoll(ctx context.Context) error {
	for range 2 { // the first may have started before
		p.mu.Lock()
		ended := p.ended
		p.mu.Unlock()
		select {
		case <-ended:
		case <-p.stopped:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sleep returns at the given instant, on the first notification, or when ctx ends. It
// reports whether there may be more notifications.
func (p *poller) sleep(ctx context.Context, until instant, notifications <-chan struct{}) (more bool) {
	select {
	case <-ctx.Done():
	case <-time.After(until - p.clock.now()):
	case _, more := <-notifications:
		return more
	}
	return true
}

// report logs the first failure and the first success after it. It reports whether
// polls are failing.
func (p *poller) report(failing bool, err error) bool {
	switch {
	case err != nil && !failing:
		p.logger.Warn("cache: polling for changes fails; entries are valid only for the bound", "error", err, "bound", p.maxStale)
	case err == nil && failing:
		p.logger.Info("cache: polling for changes succeeds again")
	}
	return err != nil
}

// recoverPanic converts a panic of the store into an error, in a goroutine where no caller
// could recover it.
func recoverPanic(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if recover() != nil { // the value may contain secrets
			err = fmt.Errorf("cache: panic in the store\n%s", debug.Stack())
		}
	}()
	return work(ctx)
}

// pollContext bounds one poll. With a longer time limit, entries would expire between
// two polls that both succeed.
func (p *poller) pollContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.maxStale/2)
}

var errUnsupported = errors.New("cache: not supported by the store")

// pollError returns the error of a poll. Once one succeeded, an error that matches
// [errors.ErrUnsupported] is of the moment, such as EOPNOTSUPP of a network.
func pollError(err error, supported bool) error {
	if !supported && errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errUnsupported, err)
	}
	return err
}

func (p *poller) pollFeed(ctx context.Context, feed Feed, cursor *string) error {
	ctx, cancel := p.pollContext(ctx)
	defer cancel()
	started := p.clock.now()
	changes, err := feed.Changes(ctx, *cursor)
	if err != nil {
		return pollError(err, *cursor != "")
	}
	p.reads.apply(changes, started)
	*cursor = changes.Next
	return nil
}

// versionsPerCall limits the number of clients in one call of a Versioner. It is what package
// sqlstore asks for in one query.
const versionsPerCall = 256

var errVersionCount = errors.New("cache: number of versions differs from number of clients")

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
	ctx, cancel := p.pollContext(ctx)
	defer cancel()
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
}
