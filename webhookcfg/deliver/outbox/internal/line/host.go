package line

import (
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// host is a host and port as the client's webhooks use it. It has slots, and a pause if nobody can
// connect to it.
type host struct {
	name     string
	webhooks int // that lead here
	held     int // notifications of overrides in the window
	underWay int
	tried    int // of those under way, the ones that were tried before
	fresh    int // entities that are ready with one that wasn't
	pause    pause.State
	waiting  []*webhook // for room in the window
	wasTried bool       // the last one started was tried before
}

func (l *Line) host(name string) *host {
	h := l.hosts[name]
	if h == nil {
		h = &host{name: name}
		l.hosts[name] = h
	}
	return h
}

// unhost forgets a host that no webhook leads to any more. What's known about it is lost with the
// last one.
func (l *Line) unhost(h *host) {
	h.webhooks--
	if h.webhooks == 0 && h.underWay == 0 {
		delete(l.hosts, h.name)
	}
}

// makeRoom lets webhooks ask that have waited for room in the window.
func (l *Line) makeRoom(h *host) {
	if h.held <= roomHost*l.limits.PerHost/2 {
		h.waiting = l.askAll(h.waiting)
	}
	if l.held <= roomOverrides/2 {
		l.waiting = l.askAll(l.waiting)
	}
}

// askAll lets some webhooks ask, and returns the others.
func (l *Line) askAll(waiting []*webhook) []*webhook {
	n := min(len(waiting), maxParts)
	for _, w := range waiting[:n] {
		l.ask(w)
	}
	return waiting[n:]
}
