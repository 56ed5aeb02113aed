package queue

import "sync"

const (
	// maxUnwritten is how many outcomes may wait to be written before lines that are behind start
	// nothing more. The writer writes at once when as many wait.
	maxUnwritten = 64
	// maxLoad is how many attempts of lines that are behind may be under way in a process, with the
	// outcomes that aren't written. Each of these lines may have one attempt beyond that. So a backlog
	// leaves time for others, and a process that's killed has little to do again.
	maxLoad = 128
)

// load is what lines that are behind have under way in a process. Attempts at webhooks whose last one
// wasn't a success don't count: they may hang.
type load struct {
	mu        sync.Mutex
	underWay  int
	unwritten int
	waiting   map[*drain]bool
}

// admits reports whether a line that's behind may start an attempt. If not, it's kicked when that has
// changed.
func (l *load) admits(d *drain, isFirst bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unwritten < maxUnwritten && (isFirst || l.underWay+l.unwritten < maxLoad) {
		return true
	}
	if l.waiting == nil {
		l.waiting = make(map[*drain]bool)
	}
	l.waiting[d] = true
	return false
}

// start counts an attempt.
func (l *load) start() {
	l.mu.Lock()
	l.underWay++
	l.mu.Unlock()
}

// end says that an attempt has ended, and add that outcomes aren't written yet, or are.
func (l *load) end() {
	l.mu.Lock()
	l.underWay--
	l.mu.Unlock()
}

func (l *load) add(unwritten int) {
	l.mu.Lock()
	l.unwritten += unwritten
	l.mu.Unlock()
}

// wake kicks the lines that wait.
func (l *load) wake() {
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for d := range waiting {
		signal(d.kick)
	}
}
