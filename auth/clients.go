package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// table is an immutable set of clients. Every check that fails does the same work,
// whether the id is unknown or disabled or the secret wrong, and however many
// secrets the client has: comparisons and rounds are those of the costliest client.
// A check that succeeds may cost less, since who holds a secret learns nothing new.
type table struct {
	clients  map[string]member
	revision uint64

	comparisons int   // with SHA-256 hashes
	derivations []int // rounds of each, the most first
	dummy       hash
	work        *work
	slow        chan struct{}
}

// member is a client that may sign in.
type member struct {
	owner   string
	plain   []digest // of SHA-256
	derived []hash   // of PBKDF2, the most rounds first
}

func (t *table) verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	m := t.clients[id] // an unknown client is one without secrets
	ok := t.matchPlain(&m, secret)
	if !ok && len(t.derivations) > 0 {
		var err error
		if ok, err = t.matchDerived(ctx, &m, secret); err != nil {
			return webhookcfg.Client{}, fmt.Errorf("auth: hashing a secret: %w", err)
		}
	}
	if !ok {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: m.owner}, nil
}

func (t *table) matchPlain(m *member, secret string) bool {
	presented, found := t.work.sum(secret), 0
	for i := range t.comparisons {
		stored := &t.dummy.sum
		if i < len(m.plain) {
			stored = &m.plain[i]
		}
		found |= t.work.equal(presented, *stored)
	}
	return found == 1
}

func (t *table) matchDerived(ctx context.Context, m *member, secret string) (bool, error) {
	select {
	case t.slow <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-t.slow }()
	found := 0
	for i, rounds := range t.derivations {
		stored := t.dummy
		stored.rounds = rounds
		if i < len(m.derived) {
			stored = m.derived[i]
		}
		equal, err := t.compareDerived(ctx, secret, stored, rounds)
		if err != nil {
			return false, err
		}
		found |= equal
	}
	return found == 1, nil
}

// compareDerived returns 1 if secret has the stored hash, always after the given
// rounds, of which the hash may need fewer.
func (t *table) compareDerived(ctx context.Context, secret string, stored hash, rounds int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	presented, err := t.work.derive(secret, stored.salt, stored.rounds)
	if err == nil && stored.rounds < rounds {
		_, err = t.work.derive(secret, t.dummy.salt, rounds-stored.rounds)
	}
	return t.work.equal(presented, stored.sum), err
}

// seat admits a client, and raises what every check costs to what a check of this
// client costs.
func (t *table) seat(id, owner string, hashes []hash) {
	m := member{owner: cmp.Or(owner, id)}
	for _, h := range hashes {
		if h.rounds == 0 {
			m.plain = append(m.plain, h.sum)
		} else {
			m.derived = append(m.derived, h)
		}
	}
	slices.SortStableFunc(m.derived, func(a, b hash) int { return b.rounds - a.rounds })
	t.clients[id] = m

	t.comparisons = max(t.comparisons, len(m.plain))
	for i, h := range m.derived {
		if i == len(t.derivations) {
			t.derivations = append(t.derivations, 0)
		}
		t.derivations[i] = max(t.derivations[i], h.rounds)
	}
}

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
func (r roster) table(w *work, slow chan struct{}) *table {
	t := &table{clients: make(map[string]member, len(r)), dummy: newDummy(), work: w, slow: slow}
	for id, c := range r {
		if !c.disabled {
			t.seat(id, c.owner, c.hashes)
		}
	}
	return t
}
