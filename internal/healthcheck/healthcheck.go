// Package healthcheck keeps health checks cheap, no matter how many callers ask for them.
package healthcheck

import (
	"context"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

const (
	// interval is the minimum time between the starts of two examinations.
	interval = time.Second
	// timeout ends an examination. A part that takes longer isn't healthy.
	timeout = 5 * time.Second
	// patience is how long a caller waits for an examination. One that hangs, for example in a
	// call of the disk, goes on after its end.
	patience = timeout + time.Second
)

// Check remembers how healthy a part is. You can use its zero value, and call it
// concurrently. Don't copy it after its first use.
type Check struct {
	calls singleflight.Group[struct{}]
	mu    sync.Mutex
	until time.Time // err is the result until then
	err   error
}

// Do calls examine and returns its error. If an examination is running, Do waits for that one
// instead, and if one started less than a second ago and is done, Do returns its result. So
// at most one starts in a second, and at most one runs at a time. If ctx ends first, or after
// six seconds, Do returns the error of a context. The examination goes on for up to five seconds, so if you give up early,
// others don't have to examine the part again.
func (c *Check) Do(ctx context.Context, examine func(context.Context) error) error {
	if err, ok := c.last(); ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := c.calls.Do(ctx, "", timeout, func(ctx context.Context) (struct{}, error) {
		if err, ok := c.last(); ok { // of a call that has just ended
			return struct{}{}, err
		}
		until := time.Now().Add(interval)
		err := examine(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.until, c.err = until, err
		return struct{}{}, err
	})
	return err
}

// last returns the result that is still valid.
func (c *Check) last() (err error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err, time.Now().Before(c.until)
}
