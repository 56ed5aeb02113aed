package auth

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

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
