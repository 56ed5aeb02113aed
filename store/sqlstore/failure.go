package sqlstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// failure is an error of a driver whose text shows no URL beyond its host and
// port, however it is printed. What the error is can still be asked with
// [errors.Is] and [errors.As].
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string              { return f.text }
func (f *failure) Is(target error) bool       { return errors.Is(f.cause, target) }
func (f *failure) As(target any) bool         { return errors.As(f.cause, target) }
func (f *failure) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, f.text) }

// wrap says what was tried, and hides the URL that a driver or a server may have
// quoted. Nil stays nil.
func wrap(what string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if quotes(text, url) {
		text = withheld(err)
	}
	return &failure{"sqlstore: " + what + ": " + text, err}
}

// withheld is what can be said of an error whose text cannot be shown.
func withheld(err error) string {
	const text = "the error quotes the URL, and is not shown"
	if errors.Is(err, ErrOutcomeUnknown) {
		return ErrOutcomeUnknown.Error() + ": " + text
	}
	return text
}

// fragment is how many bytes of a URL in a row are too many to be chance.
const fragment = 8

// quotes reports whether a text has a part of the URL that must stay secret, plain
// or in hexadecimal. A few bytes of it are enough: servers shorten what they quote,
// and drivers escape it.
func quotes(text string, url egress.URL) bool {
	secret := strings.TrimPrefix(url.Reveal(), url.String())
	text = strings.ToLower(text)
	for _, spelling := range []string{strings.ToLower(secret), hex.EncodeToString([]byte(secret))} {
		if shares(text, spelling) {
			return true
		}
	}
	return false
}

// shares reports whether the text has a fragment of the spelling.
func shares(text, spelling string) bool {
	seen := make(map[string]bool)
	for i := fragment; i <= len(text); i++ {
		seen[text[i-fragment:i]] = true
	}
	for i := fragment; i <= len(spelling); i++ {
		if seen[spelling[i-fragment:i]] {
			return true
		}
	}
	return false
}
