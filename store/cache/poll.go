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

// poll asks the store what changed, and drops it from the copy.
type poll func(ctx context.Context) error

// pollOf returns how to poll the store; nil if it has no way to tell.
func (c *Cache) pollOf(st webhookcfg.Store) poll {
	if feed, ok := st.(Feed); ok {
		cursor := ""
		return func(ctx context.Context) error { return c.pollFeed(ctx, feed, &cursor) }
	}
	if versioner, ok := st.(Versioner); ok {
		return func(ctx context.Context) error { return c.pollVersions(ctx, versioner) }
	}
	return nil
}

// follow polls until Close.
func (c *Cache) follow(poll poll) {
	var hints <-chan struct{}
	if c.notifier != nil {
		hints = c.notifier.Notify(c.ctx)
	}
	failing := false
	for {
		started := c.now()
		err := safely(c.ctx, poll)
		if err == nil {
			c.lastPoll.Store(int64(started))
		}
		failing = c.report(failing, err)
		c.sleep(started+c.pollEvery/10, nil) // hints wait for as long
		if more := c.sleep(started+c.pollEvery, hints); !more {
			hints = nil
		}
		if c.ctx.Err() != nil {
			return
		}
	}
}

// sleep returns at the given moment, with the first hint, or after Close. It reports
// whether there may be more hints.
func (c *Cache) sleep(until instant, hints <-chan struct{}) (more bool) {
	select {
	case <-c.ctx.Done():
	case <-time.After(until - c.now()):
	case _, more := <-hints:
		return more
	}
	return true
}

// report logs the first failure and the first success after it.
func (c *Cache) report(failing bool, err error) bool {
	switch {
	case c.ctx.Err() != nil:
	case err != nil && !failing:
		c.logger.Warn("cache: polling for changes fails; nothing is kept beyond its bound", "error", err, "bound", c.maxStale)
	case err == nil && failing:
		c.logger.Info("cache: polling for changes succeeds again")
	}
	return err != nil
}

// safely turns a panic of the store into an error: there is nobody to take it to.
func safely(ctx context.Context, poll poll) (err error) {
	defer func() {
		if recover() != nil { // its value may hold anything
			err = fmt.Errorf("cache: panic while polling\n%s", debug.Stack())
		}
	}()
	return poll(ctx)
}

// pollContext bounds one question. With a longer bound the copy would not be fresh
// all the time even if every question were answered.
func (c *Cache) pollContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.maxStale/2)
}

func (c *Cache) pollFeed(ctx context.Context, feed Feed, cursor *string) error {
	ctx, cancel := c.pollContext(ctx)
	defer cancel()
	started := c.now()
	changes, err := feed.Changes(ctx, *cursor)
	if err != nil {
		return err
	}
	c.clients.apply(changes, started)
	*cursor = changes.Next
	return nil
}

// versionsAtOnce is how many clients a Versioner is asked about at once.
const versionsAtOnce = 500

var errVersionCount = errors.New("cache: the store gave another number of versions than it was asked for")

func (c *Cache) pollVersions(ctx context.Context, versioner Versioner) error {
	for clients := range slices.Chunk(c.clients.names(), versionsAtOnce) {
		if err := c.pollSome(ctx, versioner, clients); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) pollSome(ctx context.Context, versioner Versioner, clients []string) error {
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
