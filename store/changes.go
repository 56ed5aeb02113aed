package store

import (
	"crypto/rand"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/cache"
)

// changeRingSize is how many names a ring remembers. A follower that is further
// behind begins anew.
const changeRingSize = 4096

// changeRing remembers which clients changed last. As long as nobody follows it, it
// remembers nothing and takes no memory. The zero value is ready. It has no lock of
// its own: what it says must change together with what Resolve says.
type changeRing struct {
	// instance tells this ring from those before and after it; "" until somebody
	// follows.
	instance string
	// names are a ring: name n, counted from the first, is at n % changeRingSize.
	names []string
	end   uint64
	// unseen are the clients named since somebody last asked. As every follower will
	// be told, they need not be named again, and one client who changes a lot does not
	// push out the others.
	unseen map[string]struct{}

	subscribers []chan struct{}
}

// add takes down that a client changed.
func (r *changeRing) add(client string) {
	for _, subscriber := range r.subscribers {
		select {
		case subscriber <- struct{}{}:
		default: // one is waiting to be taken already
		}
	}
	if r.instance == "" {
		return
	}
	if _, known := r.unseen[client]; known {
		return
	}
	if len(r.unseen) == changeRingSize {
		clear(r.unseen) // nobody can catch up any more, whatever is named again
	}
	client = strings.Clone(client) // which may be part of something larger, or more secret
	r.unseen[client] = struct{}{}
	r.names[r.end%changeRingSize] = client
	r.end++
}

// since returns what was noted after the cursor.
func (r *changeRing) since(cursor string) cache.Changes {
	r.start()
	changes := cache.Changes{Next: r.instance + "-" + strconv.FormatUint(r.end, 10)}
	from, known := r.position(cursor)
	if !known {
		changes.Reset = true
	}
	for n := from; known && n < r.end; n++ {
		changes.Clients = append(changes.Clients, r.names[n%changeRingSize])
	}
	clear(r.unseen)
	return changes
}

// start has the ring remember from now on.
func (r *changeRing) start() {
	if r.instance != "" {
		return
	}
	r.instance = rand.Text()
	r.names = make([]string, changeRingSize)
	r.unseen = make(map[string]struct{})
}

// position returns which name is the first after the cursor, if all of the names
// from there on are remembered.
func (r *changeRing) position(cursor string) (n uint64, known bool) {
	instance, digits, _ := strings.Cut(cursor, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && instance == r.instance && n <= r.end && r.end-n <= changeRingSize
}
