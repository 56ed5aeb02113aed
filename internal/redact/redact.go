// Package redact keeps secrets out of texts that are written elsewhere.
//
// [Hidden] holds a secret so that neither a log nor an encoder reaches it. The functions
// remove secrets from the texts of drivers and servers that quote their arguments, and
// of panics. [Text] replaces a secret where it is written out in full. Where a text may
// hold only a part of one, since servers shorten what they quote, [Quotes] detects that,
// and the caller withholds the text as a whole.
package redact

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// minSecret excludes a path or a guess of a letter or two, which is no secret and
	// occurs in every text.
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

// Text returns text with "[secret]" for every occurrence of a secret, shown, the part of
// a URL that may be seen, for every occurrence of the whole URL, and "[path]" for every
// occurrence of its path, with the first slash or without, or of its query.
//
// They are found plain, quoted as in Go or JSON, and escaped as in a URL, if they are
// at least four bytes long: a text is at most twice as long as before, if shown is not
// longer than the whole URL. Of several at one place the longest is replaced, and what is
// put in its place is not searched again.
func Text(text string, secrets []string, whole, shown string) string {
	var found []replacement
	for _, secret := range secrets {
		found = appendFound(found, text, secret, "[secret]")
	}
	found = appendFound(found, text, whole, shown)
	path, query, _ := strings.Cut(strings.TrimPrefix(whole, shown), "?")
	for _, part := range []string{path, strings.TrimPrefix(path, "/"), query} {
		found = appendFound(found, text, part, "[path]")
	}
	slices.SortStableFunc(found, func(a, b replacement) int { return cmp.Compare(len(b.old), len(a.old)) })
	var pairs []string
	for _, r := range found {
		pairs = append(pairs, r.old, r.new)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

type replacement struct{ old, new string }

// appendFound appends a replacement for each spelling of the secret that text holds.
func appendFound(found []replacement, text, secret, replaced string) []replacement {
	if len(secret) < minSecret {
		return found
	}
	quoted := strconv.Quote(secret)
	inJSON, _ := json.Marshal(secret) // a string has no error
	for _, spelling := range []string{secret, quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]), url.QueryEscape(secret), url.PathEscape(secret)} {
		if strings.Contains(text, spelling) {
			found = append(found, replacement{spelling, replaced})
		}
	}
	return found
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
