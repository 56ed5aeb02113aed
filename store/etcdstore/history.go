package etcdstore

import (
	"slices"
	"sort"
)

// history is the latest changes, in their order. It knows of all that came after
// the revision floor.
type history struct {
	floor   int64
	limit   int
	changes []changed
}

type changed struct {
	revision int64
	client   string
}

// add notes a change of a client. Beyond the limit the older half is forgotten.
func (h *history) add(revision int64, client string) {
	if last := len(h.changes) - 1; last >= 0 && h.changes[last].client == client {
		h.changes[last].revision = revision
		return
	}
	if len(h.changes) >= h.limit {
		h.forget((h.limit + 1) / 2)
	}
	h.changes = append(h.changes, changed{revision, client})
}

// forget drops the oldest changes.
func (h *history) forget(count int) {
	h.floor = h.changes[count-1].revision
	h.changes = slices.Delete(h.changes, 0, count)
}

// since returns the clients that changed after a revision, each once. It is not ok
// if some may be forgotten.
func (h *history) since(revision int64) (clients []string, ok bool) {
	if revision < h.floor {
		return nil, false
	}
	first := sort.Search(len(h.changes), func(n int) bool { return h.changes[n].revision > revision })
	for _, c := range h.changes[first:] {
		clients = append(clients, c.client)
	}
	slices.Sort(clients)
	return slices.Compact(clients), true
}
