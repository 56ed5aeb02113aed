package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// clientSet is an immutable set of clients. Every check that fails does the same work: the
// comparisons and rounds of the costliest client. It makes no difference if the id is unknown
// or disabled or the secret is wrong, or how many secrets the client has. A check that
// succeeds can cost less: a caller that has a secret learns nothing new from that.
type clientSet struct {
	clients  map[string]account
	revision uint64
	ends     []time.Time // of secrets, in ascending order

	comparisons int   // of SHA-256 hashes
	derivations []int // the rounds of each, in descending order
	hasher      *hasher
	slots       *slots // for derivations
}

// account is a client that isn't disabled.
type account struct {
	owner   string
	plain   []storedSecret // of SHA-256
	derived []storedSecret // of PBKDF2, by rounds in descending order
}

// storedSecret is a secret of a client.
type storedSecret struct {
	secretHash
	name  string
	until time.Time // from then on it's refused; zero for never
}

func (s *clientSet) verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	c := s.clients[id] // an unknown client has no secrets
	found := matching(c.plain, s.matchPlain(&c, secret))
	if (found == nil || found.hasEnded()) && len(s.derivations) > 0 {
		matches, err := s.matchDerived(ctx, &c, secret)
		if err != nil {
			return webhookcfg.Client{}, fmt.Errorf("auth: hashing a secret: %w", err)
		}
		if derived := matching(c.derived, matches); derived != nil {
			found = derived
		}
	}
	switch {
	case found == nil:
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	case found.hasEnded():
		return webhookcfg.Client{}, found.endError()
	}
	return webhookcfg.Client{ID: c.owner, SecretName: found.name}, nil
}

// matching returns the first secret that has its bit set in matches and hasn't ended. If all
// matching secrets have ended, it returns one of them. If none matches, it returns nil. Call
// it after all hashes are computed, so that a secret that ends during the check is refused.
func matching(secrets []storedSecret, matches int) (found *storedSecret) {
	for i := range secrets {
		if matches>>i&1 == 0 {
			continue
		}
		found = &secrets[i]
		if !found.hasEnded() {
			return found
		}
	}
	return found
}

func (s *storedSecret) hasEnded() bool { return !s.until.IsZero() && time.Until(s.until) <= 0 }

// endError returns the refusal of a secret that has ended, for the log. Only a caller that
// has the secret gets it.
func (s *storedSecret) endError() error {
	text := fmt.Sprintf("auth: secret %q ended at %s", s.name, s.until.UTC().Format(time.RFC3339))
	return fmt.Errorf("%w: %w", webhookcfg.ErrInvalidCredentials, redact.Fixed(text))
}

// matchPlain returns a bit for each comparison. Ignore the bits beyond the client's secrets:
// they belong to dummies.
func (s *clientSet) matchPlain(c *account, secret string) (matches int) {
	presented := s.hasher.sum(secret)
	for i := range s.comparisons {
		var stored digest
		if i < len(c.plain) {
			stored = c.plain[i].sum
		}
		matches |= s.hasher.equal(presented, stored) << i
	}
	return matches
}

// dummySalt is as long as the salts of [PBKDF2Line].
const dummySalt = "0123456789abcdef"

// matchDerived returns bits like matchPlain.
func (s *clientSet) matchDerived(ctx context.Context, c *account, secret string) (matches int, err error) {
	if err := s.slots.acquire(ctx); err != nil {
		return 0, err
	}
	defer s.slots.release()
	for i, rounds := range s.derivations {
		stored := secretHash{rounds: rounds, salt: dummySalt}
		if i < len(c.derived) {
			stored = c.derived[i].secretHash
		}
		equal, err := s.compareDerived(ctx, secret, stored, rounds)
		if err != nil {
			return 0, err
		}
		matches |= equal << i
	}
	return matches, nil
}

// compareDerived returns 1 if secret has the stored hash. It always computes the given number
// of rounds, even if the hash has fewer.
func (s *clientSet) compareDerived(ctx context.Context, secret string, stored secretHash, rounds int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	presented, err := s.hasher.derive(secret, stored.salt, stored.rounds)
	if err == nil && stored.rounds < rounds {
		_, err = s.hasher.derive(secret, dummySalt, rounds-stored.rounds)
	}
	return s.hasher.equal(presented, stored.sum), err
}

// revisionAt returns a number that changes with the set and whenever a secret ends.
func (s *clientSet) revisionAt(now time.Time) uint64 {
	ended, _ := slices.BinarySearchFunc(s.ends, now, func(end, now time.Time) int {
		if end.After(now) {
			return 1
		}
		return -1
	})
	return s.revision + uint64(ended)
}

// add adds a client. If it's the costliest so far, all checks now cost as much.
func (s *clientSet) add(id string, spec *clientSpec) error {
	c := account{owner: spec.owner}
	for _, stored := range spec.secrets {
		if stored.rounds == 0 {
			c.plain = append(c.plain, stored)
		} else {
			c.derived = append(c.derived, stored)
		}
		if !stored.until.IsZero() {
			s.ends = append(s.ends, stored.until)
		}
	}
	slices.SortStableFunc(c.derived, func(a, b storedSecret) int { return cmp.Compare(b.rounds, a.rounds) })
	s.clients[id] = c

	s.comparisons = max(s.comparisons, len(c.plain))
	total := 0
	for i := range max(len(s.derivations), len(c.derived)) {
		if i == len(s.derivations) {
			s.derivations = append(s.derivations, 0)
		}
		if i < len(c.derived) {
			s.derivations[i] = max(s.derivations[i], c.derived[i].rounds)
		}
		total += s.derivations[i]
	}
	if total > maxRounds {
		return errCostly
	}
	return nil
}

// maxSecrets bounds the secrets of a client. Every check costs as much as the costliest
// client, so one client with many secrets would slow down all.
const maxSecrets = 8

var (
	errDuplicate      = errors.New("duplicate entry, or a name that another secret of the client has")
	errConflict       = errors.New("lines of one client disagree on owner or disabled")
	errTooManySecrets = errors.New("client with more than 8 secrets")
	errNoSecret       = errors.New("enabled client without a secret")
	errNoClients      = errors.New("no clients")
	errCostly         = errors.New("a check would take more than 10000000 rounds of PBKDF2: use fewer secrets or rounds")
)

// builder collects the entries of each client until a clientSet can be built.
type builder map[string]*clientSpec

type clientSpec struct {
	pos      int // of the first entry, for errors
	owner    string
	disabled bool
	secrets  []storedSecret
}

// add adds an entry. Its position counts from 1. An entry says everything about its client
// except the other secrets. Names can be substrings of a whole file, so add copies them.
func (b builder) add(pos int, e fileEntry) error {
	owner := cmp.Or(e.owner, e.id)
	c, found := b[e.id]
	switch {
	case !found:
		c = &clientSpec{pos: pos, owner: strings.Clone(owner), disabled: e.disabled}
		b[strings.Clone(e.id)] = c
	case c.owner != owner || c.disabled != e.disabled:
		return errConflict
	case e.kind == kindDisabled || len(c.secrets) == 0:
		return errDuplicate
	}
	if e.kind == kindDisabled {
		return nil
	}
	return c.addSecret(e.storedSecret)
}

func (c *clientSpec) addSecret(added storedSecret) error {
	for _, s := range c.secrets {
		if s.secretHash == added.secretHash || s.name == added.name && s.name != "" {
			return errDuplicate
		}
	}
	if len(c.secrets) == maxSecrets {
		return errTooManySecrets
	}
	added.name = strings.Clone(added.name)
	c.secrets = append(c.secrets, added)
	return nil
}

// build returns the set of clients. It leaves out disabled ones, so they're treated as
// unknown. An error comes with the position of its client.
func (b builder) build(h *hasher, slots *slots) (s *clientSet, pos int, err error) {
	s = &clientSet{clients: make(map[string]account, len(b)), hasher: h, slots: slots}
	byPosition := func(x, y string) int { return b[x].pos - b[y].pos }
	for _, id := range slices.SortedFunc(maps.Keys(b), byPosition) {
		c := b[id]
		switch {
		case c.disabled:
		case len(c.secrets) == 0:
			return nil, c.pos, errNoSecret
		default:
			if err := s.add(id, c); err != nil {
				return nil, c.pos, err
			}
		}
	}
	slices.SortFunc(s.ends, time.Time.Compare)
	return s, 0, nil
}
