package auth

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// digest is a SHA-256 value. Every kind of hash ends in one.
type digest [sha256.Size]byte

// secretHash is the stored form of a secret. You can compare two with ==: hashes of one
// secret are equal if their rounds and salts are.
type secretHash struct {
	rounds int    // of PBKDF2-HMAC-SHA-256; 0 for a plain SHA-256
	salt   string // of PBKDF2
	sum    digest
}

// Bounds on PBKDF2. OWASP's Password Storage Cheat Sheet recommends the minimum of rounds.
// The maximum keeps a check to seconds. FIPS mode requires the minimum length of the salt.
const (
	minRounds  = 600_000
	maxRounds  = 10_000_000
	minSaltLen = 16
	maxSaltLen = 64
)

// newRounds are the rounds of a line that PBKDF2Line returns.
const newRounds = minRounds

// hasher has the operations that a check costs. Tests count them.
type hasher struct {
	sum    func(secret string) digest
	derive func(secret, salt string, rounds int) (digest, error)
	equal  func(a, b digest) int // 1 if equal
}

var stdHasher = hasher{sum: sum, derive: derive, equal: equal}

func sum(secret string) digest { return sha256.Sum256([]byte(secret)) }

func derive(secret, salt string, rounds int) (digest, error) {
	key, err := pbkdf2.Key(sha256.New, secret, []byte(salt), rounds, sha256.Size)
	if err != nil {
		return digest{}, err
	}
	return digest(key), nil
}

func equal(a, b digest) int { return subtle.ConstantTimeCompare(a[:], b[:]) }

// newSalt returns a random salt for PBKDF2.
func newSalt() string {
	var salt [minSaltLen]byte
	rand.Read(salt[:]) // never fails
	return string(salt[:])
}
