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

// clientSet is an immutable set of clients. Every check that fails does the same work,
// whether the id is unknown or disabled or the secret wrong, and however many secrets
// the client has: the comparisons and rounds of the costliest client. A check that
// succeeds may cost less: a caller that has a secret learns nothing new from that.
type clientSet struct {
	clients  map[string]account
	revision uint64

	comparisons int   // with SHA-256 hashes
	derivations []int // rounds of each, in descending order
	dummy       secretHash
	hasher      *hasher
	slots       chan struct{}
}

// account is a client that is not disabled.
type account struct {
	owner   string
	plain   []digest     // of SHA-256
	derived []secretHash // of PBKDF2, by rounds in descending order
}

func (s *clientSet) verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	c := s.clients[id] // an unknown client has no secrets
	ok := s.matchPlain(&c, secret)
	if !ok && len(s.derivations) > 0 {
		var err error
		if ok, err = s.matchDerived(ctx, &c, secret); err != nil {
			return webhookcfg.Client{}, fmt.Errorf("auth: hashing a secret: %w", err)
		}
	}
	if !ok {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: c.owner}, nil
}

func (s *clientSet) matchPlain(c *account, secret string) bool {
	presented, found := s.hasher.sum(secret), 0
	for i := range s.comparisons {
		stored := &s.dummy.sum
		if i < len(c.plain) {
			stored = &c.plain[i]
		}
		found |= s.hasher.equal(presented, *stored)
	}
	return found == 1
}

func (s *clientSet) matchDerived(ctx context.Context, c *account, secret string) (bool, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-s.slots }()
	found := 0
	for i, rounds := range s.derivations {
		stored := s.dummy
		stored.rounds = rounds
		if i < len(c.derived) {
			stored = c.derived[i]
		}
		equal, err := s.compareDerived(ctx, secret, stored, rounds)
		if err != nil {
			return false, err
		}
		found |= equal
	}
	return found == 1, nil
}

// compareDerived returns 1 if secret has the stored hash. It always computes the given
// number of rounds, even if the hash has fewer.
func (s *clientSet) compareDerived(ctx context.Context, secret string, stored secretHash, rounds int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	presented, err := s.hasher.derive(secret, stored.salt, stored.rounds)
	if err == nil && stored.rounds < rounds {
		_, err = s.hasher.derive(secret, s.dummy.salt, rounds-stored.rounds)
	}
	return s.hasher.equal(presented, stored.sum), err
}

// add adds a client and raises the uniform cost of a check to its cost.
func (s *clientSet) add(id, owner string, hashes []secretHash) {
	c := account{owner: cmp.Or(owner, id)}
	for _, h := range hashes {
		if h.rounds == 0 {
			c.plain = append(c.plain, h.sum)
		} else {
			c.derived = append(c.derived, h)
		}
	}
	slices.SortStableFunc(c.derived, func(a, b secretHash) int { return b.rounds - a.rounds })
	s.clients[id] = c

	s.comparisons = max(s.comparisons, len(c.plain))
	for i, h := range c.derived {
		if i == len(s.derivations) {
			s.derivations = append(s.derivations, 0)
		}
		s.derivations[i] = max(s.derivations[i], h.rounds)
	}
}

// maxSecrets bounds the secrets of a client: every check costs as much as the costliest
// client, so one client with many secrets would slow down all.
const maxSecrets = 8

var (
	errDuplicate      = errors.New("duplicate entry")
	errTooManySecrets = errors.New("client with more than 8 secrets")
	errNoSecret       = errors.New("enabled client without a secret")
	errNoClients      = errors.New("no clients")
)

// builder collects the entries of each client until a clientSet can be built.
type builder map[string]*clientSpec

type clientSpec struct {
	pos      int // of the first entry, for errors
	owner    string
	disabled bool
	hashes   []secretHash
}

// add adds one entry, with its position counted from 1. It copies the names, which may
// be substrings of a whole file.
func (b builder) add(pos int, e fileEntry) error {
	c := b[e.id]
	if c == nil {
		c = &clientSpec{pos: pos}
		b[strings.Clone(e.id)] = c
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

func (c *clientSpec) addHash(h secretHash) error {
	if slices.Contains(c.hashes, h) {
		return errDuplicate
	}
	if len(c.hashes) == maxSecrets {
		return errTooManySecrets
	}
	c.hashes = append(c.hashes, h)
	return nil
}

// incomplete returns the first position of a client that is enabled and has
// no secret; 0 if there is none.
func (b builder) incomplete() (pos int) {
	for _, c := range b {
		if !c.disabled && len(c.hashes) == 0 && (pos == 0 || c.pos < pos) {
			pos = c.pos
		}
	}
	return pos
}

// build returns the set of clients, which must be complete. A disabled client is left
// out: it is treated as unknown.
func (b builder) build(h *hasher, slots chan struct{}) *clientSet {
	s := &clientSet{clients: make(map[string]account, len(b)), dummy: randomHash(), hasher: h, slots: slots}
	for id, c := range b {
		if !c.disabled {
			s.add(id, c.owner, c.hashes)
		}
	}
	return s
}
