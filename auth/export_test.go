package auth

import (
	"crypto/sha256"
	"fmt"
	"sync/atomic"
)

// Work counts the cost of checks. Its derivations are cheap stand-ins for PBKDF2.
type Work struct {
	Sums, Comparisons, Derivations, Rounds atomic.Int64

	OnDerive func() // may be nil
}

// Total returns the sum of all counts.
func (w *Work) Total() int64 {
	return w.Sums.Load() + w.Comparisons.Load() + w.Derivations.Load() + w.Rounds.Load()
}

// Counts returns a comparable copy.
func (w *Work) Counts() [4]int64 {
	return [4]int64{w.Sums.Load(), w.Comparisons.Load(), w.Derivations.Load(), w.Rounds.Load()}
}

func (w *Work) counted() *hasher {
	return &hasher{
		sum: func(secret string) digest {
			w.Sums.Add(1)
			return sum(secret)
		},
		derive: func(secret, salt string, rounds int) (digest, error) {
			w.Derivations.Add(1)
			w.Rounds.Add(int64(rounds))
			if w.OnDerive != nil {
				w.OnDerive()
			}
			return cheapDerive(secret, salt, rounds), nil
		},
		equal: func(a, b digest) int {
			w.Comparisons.Add(1)
			return equal(a, b)
		},
	}
}

func cheapDerive(secret, salt string, rounds int) digest {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %d", secret, salt, rounds))
}

// CheapPBKDF2Line returns a line with a hash that a counted [File] verifies.
func CheapPBKDF2Line(id, secret string, rounds int) string {
	h := randomHash()
	h.rounds = rounds
	h.sum = cheapDerive(secret, h.salt, rounds)
	return fileEntry{id: id, kind: kindPBKDF2, hash: h}.line()
}

func CountedStatic(w *Work, credentials ...Credential) (*Clients, error) {
	return static(w.counted(), credentials)
}

func OpenCountedFile(w *Work, path string, options *FileOptions) (*File, error) {
	return openFile(w.counted(), path, options)
}

// Derive returns the first 32 bytes of PBKDF2-HMAC-SHA-256.
func Derive(secret, salt string, rounds int) [32]byte {
	d, err := derive(secret, salt, rounds)
	if err != nil {
		panic(err)
	}
	return d
}

// Reprint parses a file and encodes its entries, in any order.
func Reprint(text string) (lines []string, line int, err error) {
	r, line, err := parseFile(text)
	for id, c := range r {
		if c.owner != "" {
			lines = append(lines, fileEntry{id: id, kind: kindOwner, owner: c.owner}.line())
		}
		if c.disabled {
			lines = append(lines, fileEntry{id: id, kind: kindDisabled}.line())
		}
		for _, h := range c.hashes {
			kind := kindSHA256
			if h.rounds > 0 {
				kind = kindPBKDF2
			}
			lines = append(lines, fileEntry{id: id, kind: kind, hash: h}.line())
		}
	}
	return lines, line, err
}

// Remembered returns the number of credentials in a cache.
func (c *Cached) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified.Len()
}

// Rows returns the size of the largest table of a throttle.
func (t *Throttled) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.pairs.Len(), t.sources.Len(), t.clients.Len(), t.known.Len())
}
