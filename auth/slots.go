package auth

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"example.com/go-webhookcfg/internal/redact"
)

// ErrBusy means that a secret wasn't checked, since too many checks were waiting for a slow
// hash. It's not a refusal: the handler responds with 503 and Retry-After.
var ErrBusy error = redact.Fixed("auth: too many checks wait for a slow hash")

// queuePerSlot bounds the queue: with PBKDF2 of 600,000 rounds, the handler's default Timeout
// leaves time for about that many.
const queuePerSlot = 16

// slots bounds the slow hashes that are computed at the same time. Trusted sign-ins go first,
// then first come, first served. When the queue is full, the network with the most checks in
// it loses its newest one, so that a few addresses can't keep out all others.
type slots struct {
	mu      sync.Mutex // guards free and waiting
	free    int
	limit   int       // of waiting
	waiting []*queued // the oldest one first
}

// queued is a check in the queue.
type queued struct {
	place
	turn chan error // nil for a slot, ErrBusy for none
}

// place determines the order in the queue.
type place struct {
	trusted bool
	site    netip.Prefix
}

// newSlots returns n slots. Zero means half of GOMAXPROCS, and at least one.
func newSlots(n int) *slots {
	if n == 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return &slots{free: n, limit: n * queuePerSlot}
}

// acquire waits for a slot. It takes a free one even if ctx has ended. If it returns nil, you
// must call release.
func (s *slots) acquire(ctx context.Context) error {
	source, _ := SourceAddr(ctx)
	q := &queued{place{trustOf(ctx) > untrusted, site(source)}, make(chan error, 1)}
	if s.enter(q) {
		return nil
	}
	select {
	case err := <-q.turn:
		return err
	case <-ctx.Done():
		s.leave(q)
		return ctx.Err()
	}
}

// enter takes a free slot, or appends q to the queue and returns false.
func (s *slots) enter(q *queued) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return true
	}
	s.waiting = append(s.waiting, q)
	if len(s.waiting) > s.limit {
		s.remove(s.surplus()).turn <- ErrBusy
	}
	return false
}

// leave removes q from the queue, or releases the slot that it got meanwhile.
func (s *slots) leave(q *queued) {
	s.mu.Lock()
	i := slices.Index(s.waiting, q)
	if i >= 0 {
		s.remove(i)
	}
	s.mu.Unlock()
	if i < 0 && <-q.turn == nil {
		s.release()
	}
}

// release frees a slot or passes it on.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	trusted := slices.IndexFunc(s.waiting, func(q *queued) bool { return q.trusted })
	s.remove(max(trusted, 0)).turn <- nil
}

func (s *slots) remove(i int) *queued {
	q := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return q
}

// surplus returns the index of the check that a full queue refuses: an untrusted one if
// there's any.
func (s *slots) surplus() (index int) {
	count, most := make(map[place]int), 0
	for i, q := range s.waiting {
		count[q.place]++
		n := count[q.place]
		if !q.trusted {
			n += len(s.waiting)
		}
		if n >= most {
			index, most = i, n
		}
	}
	return index
}

// trust is what a wrapping verifier knows about a sign-in. The context carries it.
type trust int

const (
	untrusted trust = iota
	// trustedSource: the id has signed in from this source.
	trustedSource
	// trustedCredential: the credential has lately signed in from this source.
	trustedCredential
)

type trustKey struct{}

func withTrust(ctx context.Context, t trust) context.Context {
	return context.WithValue(ctx, trustKey{}, t)
}

func trustOf(ctx context.Context) trust {
	t, _ := ctx.Value(trustKey{}).(trust)
	return t
}
