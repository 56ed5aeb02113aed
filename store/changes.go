package store

import (
	"crypto/rand"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/cache"
)

// journalSize is how many names a journal remembers. A follower that is further
// behind begins anew.
const journalSize = 4096

// journal remembers which clients changed last. As long as nobody follows it, it
// remembers nothing and takes no memory. The zero value is ready. It has no lock of
// its own: what it says must change together with what Resolve says.
type journal struct {
	// instance tells this journal from those before and after it; "" until somebody
	// follows.
	instance string
	// names are a ring: name n, counted from the first, is at n % journalSize.
	names []string
	end   uint64
	// unseen are the clients named since somebody last asked. As every follower will
	// be told, they need not be named again, and one client who changes a lot does not
	// push out the others.
	unseen map[string]struct{}

	hints []chan struct{}
}

// note takes down that a client changed.
func (j *journal) note(client string) {
	for _, hint := range j.hints {
		select {
		case hint <- struct{}{}:
		default: // one is waiting to be taken already
		}
	}
	if j.instance == "" {
		return
	}
	if _, known := j.unseen[client]; known {
		return
	}
	if len(j.unseen) == journalSize {
		clear(j.unseen) // nobody can catch up any more, whatever is named again
	}
	client = strings.Clone(client) // which may be part of something larger, or more secret
	j.unseen[client] = struct{}{}
	j.names[j.end%journalSize] = client
	j.end++
}

// since returns what was noted after the cursor.
func (j *journal) since(cursor string) cache.Changes {
	j.begin()
	changes := cache.Changes{Next: j.instance + "-" + strconv.FormatUint(j.end, 10)}
	from, known := j.position(cursor)
	if !known {
		changes.Reset = true
	}
	for n := from; known && n < j.end; n++ {
		changes.Clients = append(changes.Clients, j.names[n%journalSize])
	}
	clear(j.unseen)
	return changes
}

// begin has the journal remember from now on.
func (j *journal) begin() {
	if j.instance != "" {
		return
	}
	j.instance = rand.Text()
	j.names = make([]string, journalSize)
	j.unseen = make(map[string]struct{})
}

// position returns which name is the first after the cursor, if all of the names
// from there on are remembered.
func (j *journal) position(cursor string) (n uint64, known bool) {
	instance, digits, _ := strings.Cut(cursor, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && instance == j.instance && n <= j.end && j.end-n <= journalSize
}
