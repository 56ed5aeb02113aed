// Package checkup bounds what checks of a part's health cost, however many ask for them.
package checkup

import (
	"context"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

const (
	// interval is the shortest time between the starts of two examinations.
	interval = time.Second
	// timeout bounds one examination. A part that takes longer is not healthy.
	timeout = 5 * time.Second
)

// Checkup remembers how healthy a part is. The zero value is ready for use. A Checkup is safe
// for concurrent use, and must not be copied after its first use.
type Checkup struct {
	calls singleflight.Group[struct{}]
	mu    sync.Mutex
	until time.Time // err is the result until then
	err   error
}

// Do returns the error of an examination that started less than a second ago. If there is
// none, it calls examine, or waits for a concurrent call. So at most one starts in a second,
// and at most one runs. If ctx ends first, Do returns its error, and examine continues for up
// to five seconds: a caller that gives up early doesn't make others examine the part again.
func (c *Checkup) Do(ctx context.Context, examine func(context.Context) error) error {
	if err, ok := c.last(); ok {
		return err
	}
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
func (c *Checkup) last() (err error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err, time.Now().Before(c.until)
}
