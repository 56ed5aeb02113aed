package store

import (
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
)

// fileState is the state of a [File]: a [Memory] that gets its changes from the log.
type fileState struct{ Memory }

// ApplyAll implements [oplog.State].
func (s *fileState) ApplyAll(changes []webhookcfg.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		s.table.Apply(c)
		s.changes.add(c.Client)
	}
}

// Live implements [oplog.State].
func (s *fileState) Live() (changes int, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.Len(), s.table.Bytes()
}

// Snapshot implements [oplog.State].
func (s *fileState) Snapshot() iter.Seq[webhookcfg.Change] {
	return func(yield func(webhookcfg.Change) bool) {
		var w walk
		for more := true; more; {
			w.changes = w.changes[:0]
			more = s.step(&w)
			for _, c := range w.changes {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// walk is a position in the iteration over all clients and their overrides.
type walk struct {
	client string
	// within says that client has more overrides, after the one of entity.
	within bool
	entity string

	changes []webhookcfg.Change // that the last step collected
}

// step collects the next changes, and says whether there can be more.
func (s *fileState) step(w *walk) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if w.within {
		s.collect(w)
	}
	for client := range s.table.Clients(w.client) {
		if w.within || len(w.changes) >= stepSize {
			return true
		}
		w.client, w.entity = client, ""
		s.collect(w)
	}
	return w.within
}

// collect adds a page of the current client.
func (s *fileState) collect(w *walk) {
	page := s.table.Page(w.client, w.entity, stepSize)
	if w.entity == "" && !page.Base.URL.IsZero() {
		w.add(webhookcfg.All(), page.Base)
	}
	for _, override := range page.Overrides {
		w.add(webhookcfg.Entity(override.Entity), override.Webhook)
	}
	w.entity, w.within = page.Next, page.Next != ""
}

// add adds the change that puts hook into effect for the scope.
func (w *walk) add(scope webhookcfg.Scope, hook webhookcfg.Webhook) {
	c := webhookcfg.SetChange(w.client, scope, hook.URL)
	if hook.URL.IsZero() {
		c = webhookcfg.UnsetChange(w.client, scope)
	}
	c.Time = hook.Since
	w.changes = append(w.changes, c)
}
