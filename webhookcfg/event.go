package webhookcfg

import (
	"net/netip"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Event reports how one request went, or one call from Go. You can log it: its URLs show
// scheme, host and port only, and it never contains a client's secret, unless a caller sent
// the secret as the id to sign in with. See PresentedID.
type Event struct {
	// Operation is "set", "unset", "read" or "list". For calls from Go, it can also be
	// "sign_in" ([Handler.SignIn]), "check" ([Handler.Check]), or the one of a [Task], such as
	// those of packages [example.com/go-webhookcfg/webhookcfg/sent] and
	// [example.com/go-webhookcfg/webhookcfg/portal].
	Operation string
	// Client is the client that signed in. It's "" if nobody did.
	Client string
	// Credential is the id that signed the client in. Calls from Go have none, except
	// [Handler.SignIn].
	Credential string
	// Actor is the person or program that acted for the client, as you set it with
	// [ContextWithActor]. It's cut to 128 bytes, without characters that a log can't show.
	// It's "" in a sign_in that was refused, where nobody has proved who they are.
	Actor string
	// PresentedID is the id of a sign-in that was refused (401) or throttled (429), cut like
	// Actor. Nobody has verified it, and it can be a secret that somebody put into the wrong
	// field: [Options.OmitPresentedID] leaves it out. It's "" if the credentials were
	// malformed, or if it contains the secret that came with it.
	PresentedID string
	// Source is the address that [example.com/go-webhookcfg/auth.WithSource] found, or the
	// connection's. It's invalid if there is neither.
	Source netip.Addr
	// SecretName is the [Client.SecretName] of the secret that the client signed in with.
	SecretName string
	// Scope is the scope of the request. It's invalid in a list, and if the request failed
	// before its scope was known.
	Scope Scope
	// URL is the URL that a set asked for, even if it was refused. It's zero if the body
	// couldn't be read. It prints as "redacted" if the text doesn't start like an http or
	// https URL with a host.
	URL egress.URL
	// Status is the HTTP status of the response.
	Status int
	// Code is the error code of the response, or "" for a success.
	Code string
	// Description is that of the [Error], or "" for a success.
	Description string
	// Duration is how long the handler took, from the arrival of the request to its response.
	Duration time.Duration
	// Err is the cause of a failure, if the code doesn't say it all. With [ProbeWarn], it's
	// also the failed probe of a set that succeeded. The cause of a failed probe is an
	// [egress.UnreachableError], which [errors.As] finds. A text of more than 8 KiB is
	// withheld, since that's too much to look for URLs and secrets in.
	Err error
}

// shownID returns an unverified id as events can show it, or "" if it contains the secret.
func shownID(id, secret string) string {
	if secret != "" && (strings.Contains(id, secret) || strings.Contains(redact.Printable(id), secret)) {
		return ""
	}
	return redact.Presented(id)
}
