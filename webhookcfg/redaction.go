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
	clean := o.redacted(text)
	if clean == text {
		return err
	}
	return redact.Error(clean, err)
}
