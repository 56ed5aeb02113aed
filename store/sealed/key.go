package sealed

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
)

const (
	keyBytes = 32
	maxKeyID = 32
	maxKeys  = 16
)

var errKeyID = errors.New("sealed: the ID of a key is not 1 to 32 of the characters A-Z a-z 0-9 _ -")

// Key encrypts URLs. It's immutable and safe for concurrent use. When you print or log a key,
// you get its ID. Make one with [NewKey]: the zero Key is invalid.
type Key struct {
	id   string
	aead cipher.AEAD
}

// NewKey returns a key with 32 random bytes as its secret. The ID is stored with each URL, and
// tells a client's keys apart: never use one ID for two secrets. It's 1 to 32 of the
// characters A-Z a-z 0-9 _ -, for example the year.
func NewKey(id string, secret []byte) (*Key, error) {
	if !isKeyID(id) {
		return nil, errKeyID
	}
	if len(secret) != keyBytes {
		return nil, fmt.Errorf("sealed: the secret of key %q has %d bytes, want %d random ones", id, len(secret), keyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("sealed: key %q: %w", id, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("sealed: key %q: %w", id, err)
	}
	return &Key{id: id, aead: aead}, nil
}

func isKeyID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return 1 <= len(id) && len(id) <= maxKeyID
}

// ID returns the ID of the key.
func (k *Key) ID() string { return k.id }

// String returns the ID of the key.
func (k *Key) String() string { return k.id }

// Format implements [fmt.Formatter]. Every verb writes the ID.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.id) }

// LogValue implements [slog.LogValuer]. It returns the ID.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.id) }

// Keys returns the keys of a client. It must be safe for concurrent use, and return soon after
// ctx ends. Every change and every resolve calls it, so keep what you fetch in memory.
type Keys interface {
	// Keys returns the key that encrypts, and behind it those that only decrypt. If it
	// returns an error, or no key, the change or the resolve fails.
	Keys(ctx context.Context, client string) ([]*Key, error)
}

// SharedKeys returns the same 1 to 16 keys for all clients. The first one encrypts.
func SharedKeys(keys ...*Key) (Keys, error) {
	if len(keys) < 1 || len(keys) > maxKeys {
		return nil, fmt.Errorf("sealed: %d keys, want 1 to %d", len(keys), maxKeys)
	}
	ids := make(map[string]bool)
	for i, key := range keys {
		switch {
		case !key.isValid():
			return nil, fmt.Errorf("sealed: key %d is nil, or not made by NewKey", i)
		case ids[key.id]:
			return nil, fmt.Errorf("sealed: two keys have the ID %q", key.id)
		}
		ids[key.id] = true
	}
	return shared(slices.Clone(keys)), nil
}

func (k *Key) isValid() bool { return k != nil && k.aead != nil }

type shared []*Key

func (s shared) Keys(context.Context, string) ([]*Key, error) { return s, nil }

// ErrKey is wrapped by the error of a change or a resolve if the client has no key for it.
var ErrKey = errors.New("no such key")

// encrypting returns the key that encrypts the URLs of a client.
func encrypting(ctx context.Context, keys Keys, client string) (*Key, error) {
	loaded, err := keys.Keys(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("sealed: keys of client %q: %w", client, err)
	}
	if len(loaded) == 0 || !loaded[0].isValid() {
		return nil, fmt.Errorf("sealed: %w: Keys returned none for client %q", ErrKey, client)
	}
	return loaded[0], nil
}

// decrypting returns the client's key with the given ID.
func decrypting(ctx context.Context, keys Keys, client, id string) (*Key, error) {
	loaded, err := keys.Keys(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	for _, key := range loaded {
		if key.isValid() && key.id == id {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrKey, id)
}
