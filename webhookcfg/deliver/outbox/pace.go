package outbox

import (
	"context"
	"sync"
	"time"
)

// Lines that are behind share what the process has to spare: a few of their attempts start in
// each tick. If the process wakes up late, it has too little CPU, and fewer start.
const (
	tick    = 2 * time.Millisecond
	maxLate = time.Millisecond
	minRate = 1 // attempts a tick
	maxRate = 64
	// maxFree is how many attempts may start at once if fewer have than could. So a single line
	// never waits for a tick.
	maxFree = 16
)

// pace decides when lines that are behind start attempts. Others never wait for it, so a
// backlog doesn't delay them, however long it is and however little CPU there is.
type pace struct {
	isClogged func() bool // outcomes are made faster than they're written

	mu      sync.Mutex
	rate    float64
	free    float64 // attempts that may start now
	last    time.Time
	waiting []*drain      // in turn
	lines   chan struct{} // has an element if a line waits
}

func newPace(isClogged func() bool) *pace {
	return &pace{isClogged: isClogged, rate: maxRate / 8, last: time.Now(), lines: make(chan struct{}, 1)}
}

// take reports whether a line that's behind may start an attempt. If not, the line hears when
// it may.
func (p *pace) take(d *drain) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.granted {
		d.granted = false
		return true
	}
	if len(p.waiting) == 0 && !p.isClogged() {
		p.refill(time.Now())
		if p.free >= 1 {
			p.free--
			return true
		}
	}
	if !d.paced {
		d.paced = true
		p.waiting = append(p.waiting, d)
	}
	signal(p.lines)
	return false
}

// refill adds what may start since the last time.
func (p *pace) refill(now time.Time) {
	p.free = min(p.free+p.rate*float64(now.Sub(p.last))/float64(tick), max(2*p.rate, maxFree))
	p.last = now
}

// run lets waiting lines go on until ctx ends.
func (p *pace) run(ctx context.Context) {
	for {
		select {
		case <-p.lines:
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			start := time.Now()
			if !wait(ctx, tick) {
				return
			}
			more = p.grant(start)
		}
	}
}

// grant lets as many lines start an attempt as the rate allows. It reports whether others wait.
func (p *pace) grant(slept time.Time) (more bool) {
	isClogged := p.isClogged()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if isClogged || now.Sub(slept) > tick+maxLate {
		p.rate = max(p.rate*3/4, minRate)
	} else {
		p.rate = min(p.rate+p.rate/64, maxRate)
	}
	p.refill(now)
	for ; !isClogged && p.free >= 1 && len(p.waiting) > 0; p.free-- {
		d := p.waiting[0]
		p.waiting = p.waiting[1:]
		d.paced, d.granted = false, true
		signal(d.kick)
	}
	return len(p.waiting) > 0
}
