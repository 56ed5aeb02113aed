package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Work counts the cost of checks. Its derivations are cheap stand-ins for PBKDF2.
type Work struct {
	Sums, Comparisons, Derivations, Rounds atomic.Int64

	OnDerive func() // may be nil
	AllEqual bool   // every comparison finds two hashes equal
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
			if w.AllEqual {
				return 1
			}
			return equal(a, b)
		},
	}
}

func cheapDerive(secret, salt string, rounds int) digest {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %d", secret, salt, rounds))
}

// CountedPBKDF2Line is [PBKDF2Line] with hashes that a counted [File] verifies.
func CountedPBKDF2Line(w *Work, id, secret string) (string, error) {
	return w.counted().newPBKDF2Line(id, secret)
}

// CheapPBKDF2Line returns a line with a hash that a counted [File] verifies.
func CheapPBKDF2Line(id, secret string, rounds int) string {
	salt := newSalt()
	return pbkdf2Line(id, secretHash{rounds, salt, cheapDerive(secret, salt, rounds)})
}

func CountedStatic(w *Work, credentials ...Credential) (*Static, error) {
	return static(w.counted(), credentials)
}

func OpenCountedFile(w *Work, path string, options *FileOptions) (*File, error) {
	return openFile(w.counted(), path, options)
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Derive returns the first 32 bytes of PBKDF2-HMAC-SHA-256.
func Derive(secret, salt string, rounds int) [32]byte {
	d, err := stdHasher.derive(secret, salt, rounds)
	if err != nil {
		panic(err)
	}
	return d
}

// Reprint parses a file and encodes it.
func Reprint(text string) (printed string, line int, err error) {
	b, line, err := parseFile(text)
	if err == nil {
		_, line, err = b.build(&stdHasher, nil)
	}
	if err != nil {
		return "", line, err
	}
	var lines []string
	for id, c := range b {
		suffix := " owner=" + cmp.Or(c.owner, id)
		if len(c.secrets) == 0 {
			lines = append(lines, id+":disabled"+suffix)
		}
		if c.disabled {
			suffix += " disabled"
		}
		for _, s := range c.secrets {
			line := fmt.Sprintf("%s:sha256:%x", id, s.sum)
			if s.rounds > 0 {
				line = pbkdf2Line(id, s.secretHash)
			}
			if s.name != "" {
				line += " name=" + s.name
			}
			if !s.until.IsZero() {
				line += " until=" + s.until.Format(time.RFC3339Nano)
			}
			lines = append(lines, line+suffix)
		}
	}
	slices.Sort(lines)
	return "begin\n" + strings.Join(lines, "\n") + "\nend\n", line, err
}

// Remembered returns the number of credentials in a cache.
func (c *Cache) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified.Len()
}

// Digest returns the key of a credential without a source in a cache.
func (c *Cache) Digest(id, secret string) [32]byte {
	return c.key(context.Background(), id, secret).digest
}

// Rows returns the size of the largest table of a throttle.
func (t *Throttle) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.pairs.Len(), t.sources.Len(), t.sites.Len(), t.clients.Len(), t.known.Len())
}
