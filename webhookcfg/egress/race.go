package egress

import (
	"context"
	"net"
	"time"
)

// attemptDelay is the Connection Attempt Delay of RFC 8305 section 5.
const attemptDelay = 250 * time.Millisecond

// race makes n attempts, each attemptDelay after the one before or as soon as
// one failed, and returns the first connection, or the first error once all have
// failed (RFC 8305 section 5). The caller ends ctx afterwards, and with it the
// attempts that come too late.
func race(ctx context.Context, n int, dial func(i int) (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	attempt := func(i int) {
		conn, err := dial(i)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	timer := time.NewTimer(attemptDelay)
	defer timer.Stop()
	var failure error
	for started, failed := 0, 0; failed < n; {
		if started < n {
			go attempt(started)
			started++
			timer.Reset(attemptDelay)
		}
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			failed++
			if failure == nil {
				failure = r.err
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, failure
}
