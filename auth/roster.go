package auth

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
)

// maxSecrets is how many secrets a client may have: as every check costs what the
// costliest client does, one client with many would slow down everybody.
const maxSecrets = 8

var (
	errDuplicate = errors.New("it repeats what was said before")
	errSecrets   = errors.New("the client has more than 8 secrets")
	errNoSecret  = errors.New("the client has no secret and is not disabled")
	errEmpty     = errors.New("there is no client")
)

// roster gathers what is said of clients until a table can be made of it.
type roster map[string]*candidate

type candidate struct {
	place    int // where the client is named first, for errors
	owner    string
	disabled bool
	hashes   []hash
}

// add takes one entry, found at the given place, counted from 1. It copies the
// names: they may be parts of a whole file's text.
func (r roster) add(place int, e entry) error {
	c := r[e.id]
	if c == nil {
		c = &candidate{place: place}
		r[strings.Clone(e.id)] = c
	}
	switch e.kind {
	case kindOwner:
		if c.owner != "" {
			return errDuplicate
		}
		c.owner = strings.Clone(e.owner)
	case kindDisabled:
		if c.disabled {
			return errDuplicate
		}
		c.disabled = true
	default:
		return c.addHash(e.hash)
	}
	return nil
}

func (c *candidate) addHash(h hash) error {
	if slices.Contains(c.hashes, h) {
		return errDuplicate
	}
	if len(c.hashes) == maxSecrets {
		return errSecrets
	}
	c.hashes = append(c.hashes, h)
	return nil
}

// incomplete returns the first place that names a client without saying how it
// signs in, 0 if there is none.
func (r roster) incomplete() (place int) {
	for _, c := range r {
		if !c.disabled && len(c.hashes) == 0 && (place == 0 || c.place < place) {
			place = c.place
		}
	}
	return place
}

// table makes the table of a complete roster. A disabled client is left out: it is
// as unknown as one that was never there.
func (r roster) table(w *work, slow *semaphore.Weighted) *table {
	t := &table{clients: make(map[string]member, len(r)), dummy: newDummy(), work: w, slow: slow}
	for id, c := range r {
		if !c.disabled {
			t.seat(id, c.owner, c.hashes)
		}
	}
	return t
}
