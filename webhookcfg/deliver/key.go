package deliver

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// Key is a secret that sender and receiver share: the sender signs with it, and the receiver
// verifies. Only [Key.Reveal] returns the secret. A Key shows nothing of it when you print,
// log or marshal it, even inside other values. The zero Key can't sign, and nothing is sent
// with it. A Key is immutable and safe for concurrent use.
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

// ParseKey parses the text form of the Standard Webhooks specification: "whsec_" and 24 to 64
// bytes in standard base64 with padding. Its error doesn't contain the text.
func ParseKey(text string) (Key, error) {
	encoded, found := strings.CutPrefix(text, keyPrefix)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(secret) < minKeyBytes || len(secret) > maxKeyBytes {
		return Key{}, errKey
	}
	// The decoder ignores line breaks and unused bits.
	if k := keyOf(secret); k.Reveal() == text {
		return k, nil
	}
	return Key{}, errKey
}

// Reveal returns the text to give to the client, which [ParseKey] reads, or "" for the zero
// Key.
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

// Recipient is who gets a request.
type Recipient struct {
	// Client is the identifier of the client.
	Client string

	// Entity is the entity whose override the webhook is. It's "" if the webhook is the
	// client's base, whichever entity a message is about, and for a [Challenge], which only
	// knows the URL.
	Entity string

	// Webhook is the webhook. For a [Challenge], it only has the URL that is being set.
	Webhook webhookcfg.Webhook
}

// newRecipient returns the recipient of what is sent for an entity, or for the base if the
// entity is "".
func newRecipient(client, entity string, hook webhookcfg.Webhook) Recipient {
	if hook.Source == webhookcfg.SourceBase {
		entity = ""
	}
	return Recipient{client, entity, hook}
}

// Keys returns the keys that sign requests to a recipient, so you can have a key for each
// client, for each of its webhooks, or for each receiver. It must be safe for concurrent use,
// and return soon after ctx ends.
type Keys interface {
	// Keys returns the present key first, then those that it replaces. Requests are signed
	// with each, so a receiver can switch at any time. If there's no key or a zero Key, or
	// there are more than four, or if Keys fails or panics, nothing is sent, and the message
	// is deferred with [ReasonUnavailable].
	Keys(ctx context.Context, to Recipient) ([]Key, error)
}

// maxKeys bounds the length of the header.
const maxKeys = 4

var errNoKey = errors.New("deliver: Keys returned no key, or the zero Key")

// loadKeys returns 1 to maxKeys keys. None is zero.
func loadKeys(ctx context.Context, keys Keys, to Recipient) (loaded []Key, err error) {
	err = guard("Keys", to.Webhook.URL, func() (err error) {
		loaded, err = keys.Keys(ctx, to)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(loaded) == 0, slices.ContainsFunc(loaded, func(k Key) bool { return k.secret.IsZero() }):
		return nil, errNoKey
	case len(loaded) > maxKeys:
		return nil, fmt.Errorf("deliver: Keys returned %d keys, want 1 to %d: remove the oldest", len(loaded), maxKeys)
	}
	return loaded, nil
}

// minMasterBytes makes a master as strong as the keys.
const minMasterBytes = 32

// The labels separate the keys from each other, and from others that are derived from the same
// master. An origin has no blank.
const (
	clientLabel = "webhookcfg/deliver key 1 of client "
	originLabel = "webhookcfg/deliver key 1 of origin "
)

// DerivedKeys computes each client's keys from the masters and the client's identifier
// (HKDF-SHA256, RFC 5869), so you don't store any keys. Pass 1 to 4 masters of at least 32
// random bytes. The first one gives the present key.
//
// A client has its key before it sets a webhook. All its receivers share that key, so if they
// belong to different vendors, one could forge messages to another: [DerivedOriginKeys] prevents
// that.
//
// To rotate the keys of all clients, put a new master in front, and remove the old one when
// every client has changed its key. To rotate the key of one client, implement [Keys].
func DerivedKeys(masters ...[]byte) (Keys, error) {
	return newDerivedKeys(masters, func(to Recipient) string { return clientLabel + to.Client })
}

// DerivedOriginKeys is like [DerivedKeys], but each scheme, host and port that a client uses
// has keys of its own ([egress.URL.Origin]). So the vendors of a client can't forge each other's
// messages. The path of a webhook can change without another key.
//
// There's no key before there is a URL. With a [Challenge], tell the client the key of the URL
// that it's about to set.
//
// Choose between the two before your first client. A change from one to the other replaces the
// keys of all clients at once, and their receivers refuse every message until they have the new
// ones. To change later, implement [Keys] with both: return the new key in front of the old one
// until every client has changed.
func DerivedOriginKeys(masters ...[]byte) (Keys, error) {
	return newDerivedKeys(masters, func(to Recipient) string {
		if origin := to.Webhook.URL.Origin(); origin != "" {
			return originLabel + origin + " and client " + to.Client
		}
		return ""
	})
}

// newDerivedKeys returns the keys that are derived with a label, or none if it's "".
func newDerivedKeys(masters [][]byte, label func(Recipient) string) (Keys, error) {
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
	return derivedKeys(func(to Recipient) (keys []Key, err error) {
		info := label(to)
		if info == "" {
			return nil, nil
		}
		for _, pseudorandom := range extracted {
			secret, err := hkdf.Expand(sha256.New, pseudorandom, info, newKeyBytes)
			if err != nil {
				return nil, err
			}
			keys = append(keys, keyOf(secret))
		}
		return keys, nil
	}), nil
}

// derivedKeys is a function rather than a struct, so that printing a value that contains it
// never shows a master.
type derivedKeys func(Recipient) ([]Key, error)

func (d derivedKeys) Keys(_ context.Context, to Recipient) ([]Key, error) { return d(to) }

// SigningKey returns the keys in the form that
// [example.com/go-webhookcfg/webhookcfg/portal.Options.SigningKey] needs: a function that
// returns the text of the present key for the webhook in effect for an entity, or for the base
// if the entity is "". Without a webhook, it's the key of the client, or "" if that has none.
// The error means that Keys failed, or has no key. You can use it concurrently.
func SigningKey(keys Keys) func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
	return func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
		loaded, err := loadKeys(ctx, keys, newRecipient(client, entity, hook))
		if hook.URL.IsZero() && errors.Is(err, errNoKey) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return loaded[0].Reveal(), nil
	}
}
