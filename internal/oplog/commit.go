package oplog

import "runtime"

// patience is how often others are let run, without anybody joining, until a group is
// taken without callers who are expected.
const patience = 64

// run writes one group after the other until Close. It is the one goroutine that
// changes the file, so that a caller whose ctx ends need not wait for the disk.
func (l *Log) run() {
	defer close(l.stopped)
	for {
		areBack := !l.backlog.isEmpty() && l.gather()
		select {
		case action := <-l.between:
			action()
			continue
		case <-l.wake:
		}
		if !areBack {
			l.gather()
		}
		g, last := l.take()
		l.commit(g)
		if last {
			l.backlog.apply()
			return
		}
	}
}

// gather lets callers run as long as they keep joining the pending group, and a
// little longer if fewer came than last time: those who were just answered mostly
// come back with their next change. A lone caller is not kept waiting. It reports
// whether anybody joined.
//
// When half of them are back, it has the backlog applied, which goes on while the group
// is written. Later, there might be no processor awake to do so.
func (l *Log) gather() bool {
	applying := false
	for seen, yields := 0, 0; ; yields++ {
		runtime.Gosched()
		n := l.joined()
		isOver := n == seen && (n >= l.expected || yields >= patience)
		if !applying && (isOver || n >= l.expected/2) {
			applying = true
			l.backlog.applyBeside()
		}
		if isOver {
			return n > 0
		}
		if n > seen {
			seen, yields = n, 0
		}
	}
}

// joined returns how many callers are in the pending group.
func (l *Log) joined() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending.entries)
}

// take ends the pending group and begins the next; last says that none will follow.
func (l *Log) take() (g *group, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, l.pending = l.pending, l.spare
	return g, l.closed
}

// commit makes a group durable and answers its callers. It is applied only then, as a
// crash could undo before what was seen: few changes at once, many beside the next group,
// so that the disk and who was answered need not wait for the state.
func (l *Log) commit(g *group) {
	g.err = l.write(g)
	if l.backlog.tally.total.Load() <= few {
		l.backlog.apply()
	}
	l.expect(g)
	close(g.done)
	l.spare = g.successor()
	if g.err == nil {
		l.durable.Store(l.segment.end)
		l.compactIfDue()
	}
}

// write makes a group durable and adds its changes to the backlog.
func (l *Log) write(g *group) error {
	if err := l.failure(); err != nil {
		return err
	}
	lines, changes := g.encode(l.segment.end, l.lines[:0], <-l.backlog.spaces)
	l.lines = lines
	if len(changes) == 0 {
		l.backlog.spaces <- changes
		return nil
	}
	if err := l.segment.append(lines, len(changes)); err != nil {
		return l.fail(err)
	}
	l.backlog.add(changes)
	return nil
}

// expect counts the callers whose next changes are worth waiting for: those who are
// about to be answered, and those who joined meanwhile.
func (l *Log) expect(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(g.entries) + len(l.pending.entries)
}
