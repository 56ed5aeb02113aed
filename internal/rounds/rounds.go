// Package rounds repeats work at an interval. Stores use it for their maintenance, and auth to
// poll.
package rounds

import (
	"context"
	"math/rand/v2"
	"time"
)

// Run calls round at an interval until ctx ends. A round gets a context that ends after
// another interval at the latest. The first round starts after a random part of the interval,
// so that processes that start together take turns. The interval must be positive.
func Run(ctx context.Context, interval time.Duration, round func(context.Context)) {
	for wait := rand.N(interval); ; wait = interval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		bounded, cancel := context.WithTimeout(ctx, interval)
		round(bounded)
		cancel()
	}
}
