package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

var errWrongSecret, errMalformed = errors.New("wrong secret"), errors.New("malformed hash")

// hostHash stands in for bcrypt. A hash is the secret in reverse order.
type hostHash struct {
	comparisons atomic.Int64
	made        []string // secrets that were hashed
	onCompare   func()   // may be nil
}

func reversed(text string) []byte {
	b := []byte(text)
	slices.Reverse(b)
	return append([]byte("hash:"), b...)
}

func (h *hostHash) hash(secret []byte) ([]byte, error) {
	h.made = append(h.made, string(secret))
	return reversed(string(secret)), nil
}

func (h *hostHash) compare(hash, secret []byte) error {
	if len(hash) == 0 { // at no cost, like bcrypt
		return errMalformed
	}
	h.comparisons.Add(1)
	if h.onCompare != nil {
		h.onCompare()
	}
	switch {
	case !strings.HasPrefix(string(hash), "hash:"):
		return errMalformed
	case string(hash) != string(reversed(string(secret))):
		return errWrongSecret
	}
	return nil
}

// find is the database of the host.
func find(ctx context.Context, id string) ([]auth.HashedSecret, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hashed := func(secret, client string) auth.HashedSecret {
		return auth.HashedSecret{Hash: reversed(secret), Client: webhookcfg.Client{ID: client}}
	}
	switch id {
	case "one":
		return []auth.HashedSecret{hashed("first-secret-of-one", "one")}, nil
	case "two":
		return []auth.HashedSecret{hashed("old-secret-of-two", "owner"), hashed("new-secret-of-two", "owner")}, nil
	case "three":
		return []auth.HashedSecret{hashed("a", "three"), hashed("b", "three"), hashed("c", "three")}, nil
	case "long":
		return []auth.HashedSecret{hashed(longSecret, "long")}, nil
	case "refused":
		return nil, fmt.Errorf("disabled: %w", webhookcfg.ErrInvalidCredentials)
	case "refused with secrets":
		return []auth.HashedSecret{hashed("secret-of-disabled", "x")}, webhookcfg.ErrInvalidCredentials
	case "empty":
		return []auth.HashedSecret{{Client: webhookcfg.Client{ID: "empty"}}}, nil
	case "malformed":
		return []auth.HashedSecret{{Hash: []byte("?"), Client: webhookcfg.Client{ID: "malformed"}}}, nil
	case "outage":
		return nil, errDown
	default:
		return nil, nil
	}
}

var (
	errDown    = errors.New("down")
	longSecret = strings.Repeat("long-secret-", 10)
)

func mustLookup(t *testing.T, h *hostHash, options auth.LookupOptions) *auth.Lookup {
	t.Helper()
	options.Find, options.Hash, options.Compare = find, h.hash, h.compare
	v, err := auth.NewLookup(options)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLookupConforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(hostHash)
		harness := authtest.Harness{
			Verifier: mustLookup(t, h, auth.LookupOptions{SlowHashes: 1}),
			SignsIn: []authtest.Credential{
				{ID: "one", Secret: "first-secret-of-one", Owner: "one"},
				{ID: "two", Secret: "old-secret-of-two", Owner: "owner"},
				{ID: "two", Secret: "new-secret-of-two", Owner: "owner"},
				{ID: "long", Secret: longSecret, Owner: "long"},
			},
			Refused: []authtest.Credential{
				{ID: "refused", Secret: "first-secret-of-one"},
				{ID: "refused with secrets", Secret: "secret-of-disabled"},
				{ID: "empty", Secret: "first-secret-of-one"},
			},
			Unavailable: auth.Func(func(ctx context.Context, _, secret string) (webhookcfg.Client, error) {
				return mustLookup(t, h, auth.LookupOptions{}).Verify(ctx, "outage", secret)
			}),
			Work: h.comparisons.Load,
		}
		h.onCompare = func() { time.Sleep(time.Second) } // for a queue
		for _, c := range authtest.Cases() {
			if err := c.Check(t.Context(), harness); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	})
}

// TestLookupRefusalsCostTheSame: a refusal takes as many comparisons as a client can have
// secrets. Those with the decoy never sign anyone in.
func TestLookupRefusalsCostTheSame(t *testing.T) {
	for maxHashes, want := range map[int]int64{0: 2, 1: 1, 2: 2, 8: 8} {
		h := new(hostHash)
		v := mustLookup(t, h, auth.LookupOptions{MaxHashes: maxHashes})
		for _, id := range []string{"unknown", "one", "two", "refused", "refused with secrets", "empty", "malformed"} {
			if id == "two" && want < 2 {
				continue
			}
			for _, secret := range []string{"wrong", "secret-of-disabled", h.made[0]} {
				before := h.comparisons.Load()
				mustRefuse(t, v, id, secret)
				if got := h.comparisons.Load() - before; got != want {
					t.Errorf("MaxHashes %d: refusing %s takes %d comparisons, want %d", maxHashes, id, got, want)
				}
			}
		}
	}
}

// TestLookupErrors: some errors aren't refusals. A refusal has its reason.
func TestLookupErrors(t *testing.T) {
	h := new(hostHash)
	v := mustLookup(t, h, auth.LookupOptions{})
	before := h.comparisons.Load()
	for id, want := range map[string]error{"outage": errDown, "three": nil} {
		client, err := v.Verify(t.Context(), id, "a")
		if err == nil || errors.Is(err, webhookcfg.ErrInvalidCredentials) || want != nil && !errors.Is(err, want) || client.ID != "" {
			t.Errorf("%s: got %v, %v", id, client, err)
		}
	}
	if got := h.comparisons.Load(); got != before {
		t.Errorf("%d comparisons without a result", got-before)
	}
	if _, err := v.Verify(t.Context(), "malformed", "?"); !errors.Is(err, errMalformed) || !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
		t.Errorf("a malformed hash: got %v", err)
	}
}

// TestLookupIsBounded: only some comparisons run at a time, and only some checks wait.
func TestLookupIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(hostHash)
		v := mustLookup(t, h, auth.LookupOptions{MaxHashes: 1, SlowHashes: 2})
		h.onCompare = func() { time.Sleep(time.Second) }
		start := time.Now()
		busy, wait := flood(t, v, 2+2*16+5, ipv4)
		wait()
		if took := time.Since(start); took != 17*time.Second || busy.Load() != 5 {
			t.Errorf("34 comparisons of a second took %v, and %d were not made; want 17s and 5", took, busy.Load())
		}
	})
}

// TestLookupEndsWithTheContext: while waiting, and between two comparisons.
func TestLookupEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(hostHash)
		v := mustLookup(t, h, auth.LookupOptions{SlowHashes: 1})
		h.onCompare = func() { time.Sleep(time.Second) }
		before := h.comparisons.Load()
		var group sync.WaitGroup
		for _, timeout := range []time.Duration{time.Second / 2, time.Millisecond} {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				if _, err := v.Verify(ctx, "two", "new-secret-of-two"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, webhookcfg.ErrInvalidCredentials) {
					t.Errorf("after %v: got %v", timeout, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if got := h.comparisons.Load() - before; got != 1 {
			t.Errorf("%d comparisons, want 1", got)
		}
	})
}

// TestLookupOptions: functions are refused if refusals could tell which clients exist.
func TestLookupOptions(t *testing.T) {
	h := new(hostHash)
	fails := func([]byte) ([]byte, error) { return nil, errDown }
	ofAnotherKind := func([]byte) ([]byte, error) { return []byte("$2a$10$"), nil }
	revision := func(context.Context) (uint64, error) { return 0, nil }
	always := func(err error) func(hash, secret []byte) error {
		return func(_, _ []byte) error { return err }
	}
	for name, options := range map[string]auth.LookupOptions{
		"zero":                 {},
		"no Find":              {Hash: h.hash, Compare: h.compare},
		"no Hash":              {Find: find, Compare: h.compare},
		"no Compare":           {Find: find, Hash: h.hash},
		"Hash fails":           {Find: find, Hash: fails, Compare: h.compare},
		"hash of another kind": {Find: find, Hash: ofAnotherKind, Compare: h.compare},
		"accepts every secret": {Find: find, Hash: h.hash, Compare: always(nil)},
		"refuses every secret": {Find: find, Hash: h.hash, Compare: always(errWrongSecret)},
		"negative MaxHashes":   {Find: find, Hash: h.hash, Compare: h.compare, MaxHashes: -1},
		"MaxHashes":            {Find: find, Hash: h.hash, Compare: h.compare, MaxHashes: 9},
		"negative SlowHashes":  {Find: find, Hash: h.hash, Compare: h.compare, SlowHashes: -1},
		"negative Poll":        {Find: find, Hash: h.hash, Compare: h.compare, Revision: revision, Poll: -1},
		"Poll of nothing":      {Find: find, Hash: h.hash, Compare: h.compare, Poll: time.Second},
	} {
		if _, err := auth.NewLookup(options); err == nil {
			t.Errorf("accepted: %s", name)
		}
	}
}

// TestLookupKeepsItsHash: the host can reuse the memory of the hash that it returned.
func TestLookupKeepsItsHash(t *testing.T) {
	h := new(hostHash)
	var returned []byte
	v, err := auth.NewLookup(auth.LookupOptions{
		Find: find,
		Hash: func(secret []byte) (_ []byte, err error) {
			returned, err = h.hash(secret)
			return returned, err
		},
		Compare: func(hash, secret []byte) error {
			err := h.compare(hash, secret)
			if errors.Is(err, errMalformed) {
				t.Error(err)
			}
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	clear(returned)
	mustRefuse(t, v, "unknown", "secret")
}
