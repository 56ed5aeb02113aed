package egress

import (
	"fmt"
	"sync"
	"time"
)

// LimitError says that a probe was not made because too many are under way, or
// too many were asked for.
type LimitError struct {
	wait time.Duration
}

// Error names the wait, such as "egress: too many probes; retry after 2s".
func (e *LimitError) Error() string {
	return fmt.Sprintf("egress: too many probes; retry after %v", e.wait)
}

// RetryAfter returns how long to wait before asking again; more than zero.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

// quotaWindow is the time in which a client may ask for quota.perMinute probes.
const quotaWindow = time.Minute

// maxQuotaClients bounds the memory that a quota takes. Only who asked in the last
// quotaWindow, or waits, is remembered.
const maxQuotaClients = 10_000

// quota bounds what each client may ask for. Rates follow the generic cell rate
// algorithm: one instant per client is all that is remembered.
type quota struct {
	max       int
	perMinute int

	mu      sync.Mutex
	clients map[string]usage
	swept   time.Time
}

type usage struct {
	waiting int
	// paid is when everything asked for so far is paid for, at a steady rate.
	paid time.Time
}

func (u usage) isIdle(now time.Time) bool { return u.waiting == 0 && !u.paid.After(now) }

// enter charges the client for one probe, to be ended by leave, or returns a
// [*LimitError].
func (q *quota) enter(client string, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	u, known := q.clients[client]
	if !known && !q.hasRoom(now) {
		return &LimitError{wait: quotaWindow}
	}
	if u.waiting >= q.max {
		return &LimitError{wait: waitForPlace}
	}
	if u.paid.Before(now) {
		u.paid = now
	}
	u.paid = u.paid.Add(quotaWindow / time.Duration(q.perMinute))
	if wait := u.paid.Sub(now) - quotaWindow; wait > 0 {
		return &LimitError{wait: wait}
	}
	u.waiting++
	if q.clients == nil {
		q.clients = map[string]usage{}
	}
	q.clients[client] = u
	return nil
}

func (q *quota) leave(client string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.clients[client]
	u.waiting--
	q.clients[client] = u
}

// hasRoom reports whether one more client can be remembered; it forgets the idle
// ones if need be, but looks for them no more than once in waitForPlace.
func (q *quota) hasRoom(now time.Time) bool {
	if len(q.clients) >= maxQuotaClients && now.Sub(q.swept) >= waitForPlace {
		q.swept = now
		for client, u := range q.clients {
			if u.isIdle(now) {
				delete(q.clients, client)
			}
		}
	}
	return len(q.clients) < maxQuotaClients
}
