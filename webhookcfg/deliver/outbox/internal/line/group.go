package line

import "time"

// Group is the number of a group in the tables: of notifications that wait for the same webhook,
// as it was set at a time. Those of a client that never had an attempt, and whose webhook nobody
// has looked up, are in Fresh. So a set moves no notification: it starts new groups, and the
// notifications in the old ones are the ones that have to go elsewhere.
//
// The lowest bit says that the notifications were tried, and the next one that the webhook is an
// entity's own. The others are the setting.
type Group int64

const (
	// Fresh is for what was just enqueued.
	Fresh Group = 0
	// Again is for what was sent again, and for what our side failed to look up.
	Again Group = 1
)

const (
	triedBit    = 1
	overrideBit = 2
	settingBits = 2
)

func groupOf(setting int64, isOverride, isTried bool) Group {
	g := Group(setting) << settingBits
	if isOverride {
		g |= overrideBit
	}
	if isTried {
		g |= triedBit
	}
	return g
}

// IsTried reports whether the notifications of a group have had an attempt, or were sent again.
func (g Group) IsTried() bool { return g&triedBit != 0 }

func (g Group) isOverride() bool { return g&overrideBit != 0 }

// isUnsorted reports whether nobody has looked up where the notifications of a group go.
func (g Group) isUnsorted() bool { return g>>settingBits == 0 }

// isSorted reports whether a group has notifications that were never tried, and whose webhook was
// looked up.
func isSorted(g Group) bool { return !g.isUnsorted() && !g.IsTried() }

// group is what the line knows about a group whose notifications aren't all in its window.
type group struct {
	id     Group
	entity string    // whose override they waited for, if it's an override's
	of     *webhook  // that takes them now; nil if it's unsorted
	more   bool      // there may be some that may go now
	next   time.Time // when the next one may go; zero: none that we know of

	// All that's due and outside of the window is of entities that are left out of questions, but for
	// those that have come back.
	isLeft bool
	back   []*entity
}

func (g *group) isDue(now time.Time) bool {
	return g.more || !g.next.IsZero() && !g.next.After(now)
}

// isAll reports whether those that aren't due may go, too, since the webhook was set again meanwhile.
func (g *group) isAll() bool { return g.of != nil && !g.of.owns(g.id) }

// open says that there may be notifications of any entity.
func (g *group) open() { g.isLeft, g.back = false, nil }

// reset says that nothing is known of the group.
func (g *group) reset() {
	g.more, g.next = true, time.Time{}
	g.open()
}
