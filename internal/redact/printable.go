package redact

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text that others chose, in whole or in part, as a log can show it. It leaves
// out what a terminal or a reader of the log could take for something else: control characters,
// those that change the direction of a text, invisible ones, and invalid UTF-8. A line break or a
// tab becomes a space.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.IsGraphic(r):
			return r
		case strings.ContainsRune("\n\r\t", r):
			return ' '
		}
		return -1
	}, text)
}

// PrintableError returns an error with the text of err as Printable returns it, no matter how you
// format it. You can unwrap err.
func PrintableError(err error) error { return printableError{err} }

// printableError asks for the text only when somebody wants to see it, since that can panic.
type printableError struct{ cause error }

func (e printableError) Error() string              { return Printable(e.cause.Error()) }
func (e printableError) Unwrap() error              { return e.cause }
func (e printableError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// maxPresented is the length of the longest text that Presented returns, in bytes.
const maxPresented = 128

// Presented is Printable for what a request presents, such as an id or a header field. It cuts the
// text to 128 bytes.
func Presented(text string) string {
	text = Printable(text)
	for len(text) > maxPresented {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// minIdentified is the length of the shortest secret that Identifies looks for. Anything shorter is
// also a part of a word.
const minIdentified = 8

// Identifies reports whether somebody sent one of their secrets where an identifier or the name of
// a host belongs. Those are stored, and logs show them, so you should refuse the request.
func Identifies(text string, secrets ...string) bool {
	shown := Printable(text) // which can join the parts of a secret
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return len(secret) >= minIdentified && (strings.Contains(text, secret) || strings.Contains(shown, secret))
	})
}
