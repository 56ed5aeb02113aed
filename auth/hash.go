package auth

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// digest is what every kind of hash ends in.
type digest [sha256.Size]byte

// secretHash is what is kept of a secret. It is comparable: two hashes of one secret are
// equal unless they differ in rounds or salt.
type secretHash struct {
	rounds int    // of PBKDF2-HMAC-SHA-256; 0 for a plain SHA-256
	salt   string // of PBKDF2
	sum    digest
}

// Bounds on PBKDF2: the fewest rounds are what OWASP's Password Storage Cheat Sheet
// asks for, the most keep one check to seconds. FIPS mode asks for the salt.
const (
	minRounds  = 600_000
	maxRounds  = 10_000_000
	minSaltLen = 16
	maxSaltLen = 64
)

// hasher is what a check costs, in the units that it is made of. Tests count them.
type hasher struct {
	sum    func(secret string) digest
	derive func(secret, salt string, rounds int) (digest, error)
	equal  func(a, b digest) int // 1 if they are
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

// randomHash returns a hash that no secret is known to have.
func randomHash() secretHash {
	var d secretHash
	var salt [minSaltLen]byte
	rand.Read(salt[:]) // never fails
	rand.Read(d.sum[:])
	d.salt = string(salt[:])
	return d
}

// secretBytes is 192 bits, which base64 spells in 32 characters without padding.
const secretBytes = 24

// NewSecret returns a new secret of 192 random bits, spelled with A-Z a-z 0-9 - and
// _ alone: form-encoding, as RFC 6749 §2.3.1 wants it before HTTP Basic, leaves it as
// it is. It begins with a letter or a digit, so that no program takes it for an option.
func NewSecret() string {
	var b [secretBytes]byte
	for {
		rand.Read(b[:]) // never fails
		if s := base64.RawURLEncoding.EncodeToString(b[:]); !strings.ContainsAny(s[:1], "-_") {
			return s
		}
	}
}
