package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// poll drops the entries that changed in the store, as far as that is not known yet.
type poll func(ctx context.Context) error

// pollsOf returns the polls for which a store has an interface, the preferred one first.
func (c *Cache) pollsOf(st webhookcfg.Store) (polls []poll) {
	if feed, ok := st.(Feed); ok {
		cursor := ""
		polls = append(polls, func(ctx context.Context) error { return c.pollFeed(ctx, feed, &cursor) })
	}
	if versioner, ok := st.(Versioner); ok {
		supported := false
		polls = append(polls, func(ctx context.Context) error { return c.pollVersions(ctx, versioner, &supported) })
	}
	return polls
}

// follow polls until Close. A poll that the store does not support is replaced by the next
// one for good; after the last there is nothing to follow.
func (c *Cache) follow(polls []poll) {
	var notifications <-chan struct{}
	if c.notifier != nil {
		notifications = c.notifier.Notify(c.ctx)
	}
	failing := false
	for len(polls) > 0 {
		started := c.now()
		err := recoverPoll(c.ctx, polls[0])
		if errors.Is(err, errUnsupported) {
			polls = polls[1:]
			c.logger.Info("cache: the store does not support a way of polling for changes", "error", err, "others", len(polls))
			continue
		}
		if err == nil {
			c.lastPoll.Store(int64(started))
		}
		failing = c.report(failing, err)
		c.sleep(started+c.pollEvery/10, nil) // notifications wait until then
		if more := c.sleep(started+c.pollEvery, notifications); !more {
			notifications = nil
		}
		if c.ctx.Err() != nil {
			return
		}
	}
}

// sleep returns at the given instant, on the first notification, or on Close. It
// reports whether there may be more notifications.
func (c *Cache) sleep(until instant, notifications <-chan struct{}) (more bool) {
	select {
	case <-c.ctx.Done():
	case <-time.After(until - c.now()):
	case _, more := <-notifications:
		return more
	}
	return true
}

// report logs the first failure and the first success after it. It reports whether
// polls are failing.
func (c *Cache) report(failing bool, err error) bool {
	switch {
	case c.ctx.Err() != nil:
	case err != nil && !failing:
		c.logger.Warn("cache: polling for changes fails; entries are valid only for the bound", "error", err, "bound", c.maxStale)
	case err == nil && failing:
		c.logger.Info("cache: polling for changes succeeds again")
	}
	return err != nil
}

// recoverPoll converts a panic of the store into an error; no caller could recover it.
func recoverPoll(ctx context.Context, poll poll) (err error) {
	defer func() {
		if recover() != nil { // the value may contain secrets
			err = fmt.Errorf("cache: panic in the store\n%s", debug.Stack())
		}
	}()
	return poll(ctx)
}

// pollContext bounds one poll. With a longer time limit, entries would expire between
// two polls that both succeed.
func (c *Cache) pollContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.maxStale/2)
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

func (c *Cache) pollFeed(ctx context.Context, feed Feed, cursor *string) error {
	ctx, cancel := c.pollContext(ctx)
	defer cancel()
	started := c.now()
	changes, err := feed.Changes(ctx, *cursor)
	if err != nil {
		return pollError(err, *cursor != "")
	}
	c.clients.apply(changes, started)
	*cursor = changes.Next
	return nil
}

// versionsPerCall limits the number of clients in one call of a Versioner.
const versionsPerCall = 500

var errVersionCount = errors.New("cache: number of versions differs from number of clients")

func (c *Cache) pollVersions(ctx context.Context, versioner Versioner, supported *bool) error {
	for clients := range slices.Chunk(c.clients.names(), versionsPerCall) {
		if err := c.pollChunk(ctx, versioner, clients); err != nil {
			return pollError(err, *supported)
		}
		*supported = true
	}
	return nil
}

func (c *Cache) pollChunk(ctx context.Context, versioner Versioner, clients []string) error {
	ctx, cancel := c.pollContext(ctx)
	defer cancel()
	started := c.now()
	versions, err := versioner.Versions(ctx, clients)
	if err != nil {
		return err
	}
	if len(versions) != len(clients) {
		return errVersionCount
	}
	for i, client := range clients {
		c.clients.check(client, versions[i], started)
	}
	return nil
}
