package oplog

import "example.com/go-webhookcfg/webhookcfg"

const (
	// maxGroup bounds the bytes of a group; who comes later waits for the next.
	maxGroup = 1 << 20
	// partSize is how many callers are answered at a time: they get on while the
	// changes of the next are applied.
	partSize = 16
)

// group is what is written and synced together.
type group struct {
	entries []entry // in the order of the file
	bodies  []byte  // one behind the other
	// parts has a channel for each partSize entries. It is closed once the group is
	// durable and they are applied, or err is set.
	parts []chan struct{}
	err   error
}

// entry is a change on its way into the file.
type entry struct {
	change webhookcfg.Change
	// end is where the entry's body ends in the bodies of its group.
	end         int
	isWithdrawn bool
}

// fits reports whether there is room for the line of a change.
func (g *group) fits(body []byte) bool {
	return len(g.entries) == 0 || len(g.bodies)+len(body)+(len(g.entries)+1)*maxTail <= maxGroup
}

// add adds a change, as the entry i. Done is closed when its caller can be answered.
func (g *group) add(c webhookcfg.Change, body []byte) (i int, done <-chan struct{}) {
	i = len(g.entries)
	if i%partSize == 0 {
		g.parts = append(g.parts, make(chan struct{}))
	}
	g.bodies = append(g.bodies, body...)
	g.entries = append(g.entries, entry{change: c, end: len(g.bodies)})
	return i, g.parts[i/partSize]
}

// encode appends the lines of what was not withdrawn, to be written at the offset
// synced, and the changes they are of.
func (g *group) encode(synced int64, lines []byte, changes []webhookcfg.Change) ([]byte, []webhookcfg.Change) {
	start := 0
	for i := range g.entries {
		e := &g.entries[i]
		if !e.isWithdrawn {
			lines = appendLine(lines, g.bodies[start:e.end], synced)
			changes = append(changes, e.change)
		}
		start = e.end
	}
	return lines, changes
}

// successor returns a group that makes use of the space of g, which is done with.
func (g *group) successor() *group {
	clear(g.entries)
	return &group{entries: g.entries[:0], bodies: g.bodies[:0], parts: make([]chan struct{}, 0, len(g.parts))}
}
