package oplog

import "example.com/go-webhookcfg/webhookcfg"

// maxGroup bounds the bytes of a group; who comes later waits for the next.
const maxGroup = 1 << 20

func newGroup() *group { return &group{done: make(chan struct{})} }

// group is what is written and synced together.
type group struct {
	entries []entry       // in the order of the file
	bodies  []byte        // one behind the other
	done    chan struct{} // closed once the group is durable, or err is set
	err     error
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

// add adds a change, as the entry i.
func (g *group) add(c webhookcfg.Change, body []byte) (i int) {
	g.bodies = append(g.bodies, body...)
	g.entries = append(g.entries, entry{change: c, end: len(g.bodies)})
	return len(g.entries) - 1
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
	return &group{entries: g.entries[:0], bodies: g.bodies[:0], done: make(chan struct{})}
}
