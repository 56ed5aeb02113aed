package sealed

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// An envelope is the text that the inner store keeps instead of a URL:
//
//	sealed.1.<ID of the key>.<nonce, encrypted URL and tag in base64url without padding>
//
// No URL looks like this, since it has no "://".
const (
	envelopePrefix = "sealed."
	version        = "1"
)

// ErrEnvelope is wrapped by the error of a read if an envelope was damaged, changed, or copied
// from another place, or if a URL isn't encrypted and [Options.AllowPlain] is off.
var ErrEnvelope = errors.New("not an envelope of this webhook")

// seal returns the envelope of a URL.
func (k *Key) seal(url, client string, scope webhookcfg.Scope) string {
	encrypted := k.aead.Seal(nil, nil, []byte(url), associated(k.id, client, scope))
	return envelopePrefix + version + "." + k.id + "." + base64.RawURLEncoding.EncodeToString(encrypted)
}

// envelope is one that has been read but not opened.
type envelope struct {
	keyID     string
	encrypted []byte
}

func isEnvelope(text string) bool { return strings.HasPrefix(text, envelopePrefix) }

// IsEnvelope reports whether the inner store returned an envelope instead of a URL. A tool that
// works with the inner store should then leave the webhook alone: it can't judge the URL, and one
// that it sets would be readable.
func IsEnvelope(url egress.URL) bool { return isEnvelope(url.Reveal()) }

func parseEnvelope(text string) (envelope, error) {
	rest, _ := strings.CutPrefix(text, envelopePrefix)
	v, rest, _ := strings.Cut(rest, ".")
	if v != version {
		return envelope{}, fmt.Errorf("%w: its version is not %s, so it may be from a later release", ErrEnvelope, version)
	}
	id, encoded, found := strings.Cut(rest, ".")
	encrypted, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !found || !isKeyID(id) || err != nil || strings.ContainsAny(encoded, "\r\n") { // the decoder ignores line breaks
		return envelope{}, fmt.Errorf("%w: it is damaged", ErrEnvelope)
	}
	return envelope{id, encrypted}, nil
}

// open returns the URL in an envelope.
func (k *Key) open(e envelope, client string, scope webhookcfg.Scope) (string, error) {
	url, err := k.aead.Open(nil, nil, e.encrypted, associated(k.id, client, scope))
	if err != nil || len(url) == 0 {
		return "", fmt.Errorf("%w: it was changed, or belongs to another client or entity, or key %q has another secret", ErrEnvelope, k.id)
	}
	return string(url), nil
}

// associated returns the additional data of an envelope, which only opens in its own place.
// Each part has its length in front, so two places never have the same data.
func associated(keyID, client string, scope webhookcfg.Scope) []byte {
	data := make([]byte, 0, 64+len(keyID)+len(client)+len(scope.Entity()))
	data = append(data, "webhookcfg/sealed "+version...)
	for _, part := range [...]string{keyID, client, scope.Entity()} { // the entity is "" for all
		data = binary.BigEndian.AppendUint64(data, uint64(len(part)))
		data = append(data, part...)
	}
	return data
}
