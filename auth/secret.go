package auth

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"example.com/go-webhookcfg/internal/redact"
)

// Secret is a secret that a client signs in with. You can log, format or marshal it, alone or
// inside other values: its text never shows. Only [Secret.Reveal] returns it.
//
// The zero value is no secret, and nobody can sign in with it. A Secret is immutable and safe
// for concurrent use.
type Secret struct{ text redact.Hidden }

// NewSecret returns a secret with the given text. It doesn't check the text. An empty one
// gives you the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{redact.Hide(text)}
}

// secretBytes is 192 bits: 32 characters of base64 without padding.
const secretBytes = 24

// GenerateSecret returns a new secret of 192 random bits: 32 of the characters A-Z, a-z, 0-9,
// - and _. RFC 6749 §2.3.1 requires form-encoding before HTTP Basic, which leaves these
// characters as they are. The secret starts with a letter or a digit, so no program mistakes
// it for an option.
func GenerateSecret() Secret {
	var b [secretBytes]byte
	for {
		rand.Read(b[:]) // never fails
		if s := base64.RawURLEncoding.EncodeToString(b[:]); !strings.ContainsAny(s[:1], "-_") {
			return NewSecret(s)
		}
	}
}

// Reveal returns the text of the secret, for the client. For the zero Secret it's "".
func (s Secret) Reveal() string { return s.text.Reveal() }

// String returns "[secret]", or "" for the zero Secret.
func (s Secret) String() string { return s.text.String() }

// Format implements [fmt.Formatter]. Every verb writes the result of String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements [slog.LogValuer]. It returns the result of String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler]. It returns the result of String, so you
// can't store a secret with it. Store a hash.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The minimum lengths of secrets, in characters. Anyone can compute a plain SHA-256 billions
// of times per second, so only random text withstands that: 16 characters of [GenerateSecret]
// have 96 bits. The minimum for chosen secrets is from NIST SP 800-63B, revision 3, section
// 5.1.1. Revision 4 asks for 15 characters where a password is the only factor.
const (
	minGenerated = 16
	minChosen    = 8
)

// checkSecret refuses secrets that no request can present, and short ones.
func checkSecret(secret string, minLen int) error {
	control := func(c rune) bool { return c < ' ' || c == 0x7F }
	if !utf8.ValidString(secret) || strings.ContainsFunc(secret, control) {
		return errSecret
	}
	if utf8.RuneCountInString(secret) < minLen {
		return fmt.Errorf("secret of less than %d characters", minLen)
	}
	return nil
}
