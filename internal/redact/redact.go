// Package redact keeps secrets out of texts written elsewhere: by drivers and
// servers that quote their arguments, and by panics.
//
// [Secret] and [URL] replace a secret where it is written out in full. Where a text
// may hold only a part of one, since servers shorten what they quote, [Quotes]
// detects that, and the caller withholds the text as a whole.
package redact

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

const (
	// minSecret excludes a path of a letter or two, which is no secret and occurs in
	// every text.
	minSecret = 4
	// fragment is the number of consecutive bytes of a secret that are too many to
	// be a coincidence.
	fragment = 8
)

// Error returns an error with the given text, however it is formatted. With
// [errors.Is] and [errors.As] it matches what the cause matches. The cause is not
// unwrapped and never printed; it may be nil.
func Error(text string, cause error) error { return &redactedError{text, cause} }

type redactedError struct {
	text  string
	cause error
}

func (e *redactedError) Error() string              { return e.text }
func (e *redactedError) Is(target error) bool       { return errors.Is(e.cause, target) }
func (e *redactedError) As(target any) bool         { return errors.As(e.cause, target) }
func (e *redactedError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.text) }

// Secret returns text with "[secret]" for every occurrence of the secret in one of
// its common spellings: plain, quoted as in Go, and escaped as in a URL. An empty
// secret occurs nowhere.
func Secret(text, secret string) string { return replace(text, secret, "[secret]") }

// URL returns text with shown, the part of a URL that may be seen, for every
// occurrence of the whole URL, and "[path]" for every occurrence of the remainder,
// with its first byte or without. The spellings are those of [Secret].
func URL(text, whole, shown string) string {
	text = replace(text, whole, shown)
	if tail := strings.TrimPrefix(whole, shown); len(tail) >= minSecret {
		text = replace(text, tail, "[path]")
		text = replace(text, tail[1:], "[path]")
	}
	return text
}

func replace(text, secret, replacement string) string {
	if secret == "" {
		return text
	}
	quoted := strconv.Quote(secret)
	for _, spelling := range []string{secret, quoted[1 : len(quoted)-1], url.QueryEscape(secret), url.PathEscape(secret)} {
		text = strings.ReplaceAll(text, spelling, replacement)
	}
	return text
}

// Quotes reports whether text holds eight consecutive bytes of the secret, or all of
// a shorter one, in any case, plain or in hexadecimal. A secret of less than four
// bytes is never found.
func Quotes(text, secret string) bool {
	if len(secret) < minSecret {
		return false
	}
	text = strings.ToLower(text)
	return overlap(text, strings.ToLower(secret)) || overlap(text, hex.EncodeToString([]byte(secret)))
}

// overlap reports whether text holds a fragment of the spelling. It takes time
// proportional to the sum of their lengths, since both may be long.
func overlap(text, spelling string) bool {
	size := min(fragment, len(spelling))
	parts := make(map[string]struct{})
	for end := size; end <= len(spelling); end++ {
		parts[spelling[end-size:end]] = struct{}{}
	}
	for end := size; end <= len(text); end++ {
		if _, found := parts[text[end-size:end]]; found {
			return true
		}
	}
	return false
}
