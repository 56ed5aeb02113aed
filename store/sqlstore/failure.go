package sqlstore

import (
	"errors"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// wrap says what was tried, and hides the URL that a driver or a server may have
// quoted, wholly or in part. Nil stays nil.
func wrap(what string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = withheld(err)
	}
	return redact.Error("sqlstore: "+what+": "+text, err)
}

// withheld is what can be said of an error whose text cannot be shown.
func withheld(err error) string {
	const text = "the error quotes the URL, and is not shown"
	if errors.Is(err, ErrOutcomeUnknown) {
		return ErrOutcomeUnknown.Error() + ": " + text
	}
	return text
}
