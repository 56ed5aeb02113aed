package auth

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
)

// Secret is a secret that a client signs in with. However it is formatted, logged or
// marshalled, by itself or inside other values, nothing of the text is shown; only
// [Secret.Reveal] returns it.
//
// The zero value is no secret: nothing signs in with it. A Secret is immutable and safe
// for concurrent use.
type Secret struct{ text redact.Hidden }

// NewSecret returns a secret with the given text, which is not checked. The empty text
// gives the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{redact.Hide(text)}
}

// secretBytes is 192 bits: 32 characters of base64 without padding.
const secretBytes = 24

// GenerateSecret returns a new secret of 192 random bits, 32 of the characters A-Z, a-z,
// 0-9, - and _: form-encoding, which RFC 6749 §2.3.1 requires before HTTP Basic, does not
// change it. It starts with a letter or a digit, so that no program treats it as an
// option.
func GenerateSecret() Secret {
	var b [secretBytes]byte
	for {
		rand.Read(b[:]) // never fails
		if s := base64.RawURLEncoding.EncodeToString(b[:]); !strings.ContainsAny(s[:1], "-_") {
			return NewSecret(s)
		}
	}
}

// Reveal returns the text of the secret, as the client has to be given it; "" for the
// zero Secret.
func (s Secret) Reveal() string { return s.text.Reveal() }

// String returns "[secret]", or "" for the zero Secret.
func (s Secret) String() string { return s.text.String() }

// Format implements [fmt.Formatter]. Every verb writes the result of String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements [slog.LogValuer]. It returns the result of String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler]. It returns the result of String: to
// store a secret, store its hash.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
