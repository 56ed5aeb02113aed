package webhookcfg

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Client is the client that signed in. It owns webhooks. Several credentials, each with its
// own id, can share one owner: see [Event.Client] and [Event.Credential].
type Client struct {
	// ID names the owner of the webhooks in every call of the [Store]. It doesn't have to be
	// the id that signed in.
	//
	// It has 1 to 1024 bytes of UTF-8 without control characters, and not only white space.
	// If you return any other ID with a nil error, the handler treats it as a defect (500).
	ID string
	// SecretName names the secret that signed in, for events and logs. It can be empty. Don't
	// derive it from the secret.
	SecretName string
}

var errClientID = errors.New("webhookcfg: the verifier returned a client with an invalid ID: see Client.ID")

// maxClientID is the longest ID of a [Client], in bytes.
const maxClientID = 1024

// validClientID reports whether every store can keep the ID, and every log can show it.
func validClientID(id string) bool {
	return len(id) <= maxClientID && utf8.ValidString(id) && strings.TrimSpace(id) != "" && !strings.ContainsFunc(id, unicode.IsControl)
}
