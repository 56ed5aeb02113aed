package outbox

import "time"

const (
	// hold is how long a process keeps a line without work. The next notification then needs
	// no claim.
	hold = 5 * time.Second
	// slice is how long a line may be drained while others wait.
	slice = 5 * time.Second
)

func (p *process) isScarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce
}

// hasTurn reports whether a line that has no turn may have one, since nobody else wants it.
func (p *process) hasTurn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopping && !p.scarce && p.active < p.options.Clients
}

func (p *process) setActive(isQuiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isQuiet {
		p.active--
	} else {
		p.active++
	}
}
