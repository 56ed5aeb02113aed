package deliver

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
)

// Key is a key that sender and receiver share: the sender signs with it, and the receiver
// verifies. However it is formatted, logged or marshalled, by itself or inside other
// values, nothing of the secret is shown; only [Key.Reveal] returns it.
//
// The zero value is no key: nothing is sent with it. A Key is immutable and safe for
// concurrent use.
type Key struct{ secret redact.Hidden }

const (
	keyPrefix   = "whsec_"
	minKeyBytes = 24
	maxKeyBytes = 64
	newKeyBytes = 32
)

var errKey = errors.New("deliver: key is not " + keyPrefix + " and the base64 of 24 to 64 bytes")

// GenerateKey returns a key of 32 random bytes.
func GenerateKey() Key {
	secret := make([]byte, newKeyBytes)
	_, _ = rand.Read(secret) // never fails
	return keyOf(secret)
}

func keyOf(secret []byte) Key { return Key{redact.Hide(string(secret))} }

// ParseKey returns the key with the given text: "whsec_" and the standard base64, with
// padding, of 24 to 64 bytes, as the Standard Webhooks specification writes it. The error
// contains nothing of the text.
func ParseKey(text string) (Key, error) {
	encoded, found := strings.CutPrefix(text, keyPrefix)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(secret) < minKeyBytes || len(secret) > maxKeyBytes {
		return Key{}, errKey
	}
	// Line breaks, and bits that are not used, are ignored in the decoding.
	if k := keyOf(secret); k.Reveal() == text {
		return k, nil
	}
	return Key{}, errKey
}

// Reveal returns the text of the key, as the client has to be given it and [ParseKey]
// reads it; "" for the zero Key.
func (k Key) Reveal() string {
	if k.secret.IsZero() {
		return ""
	}
	return keyPrefix + base64.StdEncoding.EncodeToString([]byte(k.secret.Reveal()))
}

// String returns "[secret]", or "" for the zero Key.
func (k Key) String() string { return k.secret.String() }

// Format implements [fmt.Formatter]. Every verb writes the result of String.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue implements [slog.LogValuer]. It returns the result of String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText implements [encoding.TextMarshaler]. It returns the result of String: to
// store a key, encrypt what Reveal returns.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// signatures returns the value of the field webhook-signature: for each key "v1," and the
// base64 of an HMAC-SHA256, separated by spaces.
func signatures(id, timestamp string, body []byte, keys []Key) string {
	head := id + "." + timestamp + "."
	text := make([]byte, 0, len(keys)*48)
	var sum [sha256.Size]byte
	for i, key := range keys {
		if i > 0 {
			text = append(text, ' ')
		}
		mac := hmac.New(sha256.New, []byte(key.secret.Reveal()))
		_, _ = io.WriteString(mac, head) // a hash returns no error
		_, _ = mac.Write(body)
		text = append(text, "v1,"...)
		text = base64.StdEncoding.AppendEncode(text, mac.Sum(sum[:0]))
	}
	return string(text)
}

// Keys has the keys that sign what is sent to a client's receivers. It must be safe for
// concurrent use, and return soon after ctx ended.
type Keys interface {
	// Keys returns the present key first, then those that are being replaced:
	// requests are signed with each, so that a receiver may change its key at any time.
	// Of more than four, the first four are used. None, or a zero Key, is an error:
	// nothing is sent unsigned.
	Keys(ctx context.Context, client string) ([]Key, error)
}

// maxKeys bounds the keys of a client, and with them the length of the header.
const maxKeys = 4

var errNoKey = errors.New("deliver: Keys returned no key, or the zero Key")

// loadKeys returns 1 to maxKeys keys, of which none is zero.
func loadKeys(ctx context.Context, keys Keys, client string) ([]Key, error) {
	loaded, err := keys.Keys(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("deliver: keys of the client: %w", err)
	}
	loaded = loaded[:min(len(loaded), maxKeys)]
	if len(loaded) == 0 {
		return nil, errNoKey
	}
	for _, key := range loaded {
		if key.secret.IsZero() {
			return nil, errNoKey
		}
	}
	return loaded, nil
}

// minMasterBytes is the length from which a master is as strong as the keys.
const minMasterBytes = 32

// derivationLabel separates the keys from others that are derived from the same master.
const derivationLabel = "webhookcfg/deliver key 1 of client "

// DerivedKeys returns keys that are derived from the masters (HKDF-SHA256, RFC 5869) and the
// identifier of the client, one of each, so that no client's key need be stored. Each of
// the 1 to 4 masters must have 32 random bytes or more; the first one gives the present
// key.
//
// A master in front of the others rotates the keys of all clients. The one that it
// replaces stays until every client has changed its key. To rotate the key of one client,
// or to have one for each entity, implement [Keys].
func DerivedKeys(masters ...[]byte) (Keys, error) {
	if len(masters) < 1 || len(masters) > maxKeys {
		return nil, fmt.Errorf("deliver: %d masters, want 1 to %d", len(masters), maxKeys)
	}
	var extracted [][]byte
	for i, master := range masters {
		if len(master) < minMasterBytes {
			return nil, fmt.Errorf("deliver: master %d has %d bytes, want %d or more", i, len(master), minMasterBytes)
		}
		pseudorandom, err := hkdf.Extract(sha256.New, master, nil)
		if err != nil {
			return nil, fmt.Errorf("deliver: master %d: %w", i, err)
		}
		extracted = append(extracted, pseudorandom)
	}
	return derivedKeys(func(client string) ([]Key, error) {
		keys := make([]Key, len(extracted))
		for i, pseudorandom := range extracted {
			secret, err := hkdf.Expand(sha256.New, pseudorandom, derivationLabel+client, newKeyBytes)
			if err != nil {
				return nil, err
			}
			keys[i] = keyOf(secret)
		}
		return keys, nil
	}), nil
}

// derivedKeys is a function, and not a struct, so that no print of a value that has it
// reaches the masters.
type derivedKeys func(client string) ([]Key, error)

func (d derivedKeys) Keys(_ context.Context, client string) ([]Key, error) { return d(client) }
