package store

import (
	"crypto/rand"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/cache"
)

// changeRingSize is the number of names in a changeRing. A reader that falls further behind
// has to start again.
const changeRingSize = 4096

// changeRing holds the names of the clients that changed last. It stays empty, and takes no
// memory, until somebody reads it. The zero value is ready to use. It has no lock of its own,
// because it must change together with the results of Resolve.
type changeRing struct {
	// instance tells this ring's cursors from those that other rings gave out. It's "" until
	// the first read.
	instance string
	// names is the ring: the nth name ever added is at n % changeRingSize.
	names []string
	end   uint64
	// unseen are the clients added since the last read. All readers will get their names
	// anyway, so add skips them. A client that changes all the time then doesn't displace the
	// others.
	unseen map[string]struct{}

	subscribers []chan struct{}
}

// add records that a client changed, and notifies the subscribers.
func (r *changeRing) add(client string) {
	for _, subscriber := range r.subscribers {
		select {
		case subscriber <- struct{}{}:
		default: // it hasn't read the last notification yet
		}
	}
	if r.instance == "" {
		return
	}
	if _, known := r.unseen[client]; known {
		return
	}
	if len(r.unseen) == changeRingSize {
		clear(r.unseen) // every reader is too far behind already, so repetitions do no harm
	}
	client = strings.Clone(client) // it could be part of something larger, or secret
	r.unseen[client] = struct{}{}
	r.names[r.end%changeRingSize] = client
	r.end++
}

// since returns the clients added after the cursor.
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

// start makes the ring keep names from now on.
func (r *changeRing) start() {
	if r.instance != "" {
		return
	}
	r.instance = rand.Text()
	r.names = make([]string, changeRingSize)
	r.unseen = make(map[string]struct{})
}

// position returns the number of the first name after the cursor. It's known if the ring
// still has that name and all later ones.
func (r *changeRing) position(cursor string) (n uint64, known bool) {
	instance, digits, _ := strings.Cut(cursor, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && instance == r.instance && n <= r.end && r.end-n <= changeRingSize
}
