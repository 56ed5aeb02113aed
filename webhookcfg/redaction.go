package webhookcfg

import (
	"fmt"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
)

// withheld returns an error that shows only the text, the types of the cause and, if the
// cause has one, its fixed text.
func withheld(text string, cause error) error {
	if fixed, ok := redact.FixedIn(cause); ok {
		text += ": " + fixed.Error()
	}
	return redact.Error(text+" ("+strings.Join(appendTypes(nil, cause), ": ")+")", cause)
}

// appendTypes appends the types of an error and of the errors that it wraps, up to eight.
func appendTypes(types []string, err error) []string {
	if err == nil || len(types) == 8 {
		return types
	}
	types = append(types, fmt.Sprintf("%T", err))
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return appendTypes(types, wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range wrapper.Unwrap() {
			types = appendTypes(types, err)
		}
	}
	return types
}

// redacted removes secrets from a text of another package, such as a driver that quotes its
// arguments: the client's secret, the token that holds it, and the path and query of the URL in
// any spelling, and of others, such as the one that a set would replace.
func (o *operation) redacted(text string) string {
	return redact.Text(text, o.secrets[:], o.url.Reveal(), o.url.String())
}

func (o *operation) redactedError(err error) error {
	// Until the client signs in, all texts are fixed, and a caller could choose a secret that
	// equals one of them.
	if err == nil || o.event.Client == "" {
		return err
	}
	text := err.Error()
	clean := redact.Printable(o.redacted(text))
	if clean == text {
		return err
	}
	return redact.Error(clean, err)
}

// ruleSecret refuses a secret where an identifier or the name of a host belongs.
const ruleSecret = "An identifier, or the host of the URL, contains the secret of the request; send that only to sign in"

// checkSecrets refuses a text that's stored and logged if a secret of the request is in it.
func (o *operation) checkSecrets(text string) *apiError {
	if redact.Identifies(text, o.secrets[:]...) {
		return invalidRequest(ruleSecret)
	}
	return nil
}

// entityScope returns the scope of the entity that a request names.
func (o *operation) entityScope(id string) (Scope, *apiError) {
	if e := o.checkSecrets(id); e != nil {
		return Scope{}, e
	}
	return o.h.entities.scope(id)
}
