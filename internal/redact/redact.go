// Package redact keeps secrets out of texts that you pass on.
//
// Put a secret into a [Hidden], and logs and encoders can't reach it.
//
// The functions are for texts that you didn't write, such as panics, or errors of drivers and
// servers that quote their arguments. [Text] replaces secrets that are written out in full.
// But servers shorten long quotes, so a text can also contain just a part of a secret.
// [Quotes] tells you. You should then withhold the whole text.
package redact

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// minSecret is the shortest secret to look for. A path or a guess of a letter or two is
	// no secret, and you'd find it in every text.
	minSecret = 4
	// If a text has this many consecutive bytes of a secret, that's not a coincidence.
	fragment = 8
)

// Error returns an error that shows only this text, no matter how you format it. [errors.Is]
// and [errors.As] match it like the cause. You can't unwrap or print the cause. It can be
// nil.
func Error(text string, cause error) error { return &redactedError{text, cause} }

type redactedError struct {
	text  string
	cause error
}

func (e *redactedError) Error() string              { return e.text }
func (e *redactedError) Is(target error) bool       { return errors.Is(e.cause, target) }
func (e *redactedError) As(target any) bool         { return errors.As(e.cause, target) }
func (e *redactedError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.text) }

// Text returns text without secrets. It replaces each secret with "[secret]", the whole URL
// with shown, which is the part that may be seen, and the URL's path or query with "[path]".
// The path is found with and without its first slash, and decoded too. A value in the query is
// found if it has at least eight bytes.
//
// Text finds them in plain spelling, quoted as in Go or JSON, and escaped as in HTML or a URL,
// if they have at least four bytes. If several start at the same place, it replaces the
// longest. It doesn't search the replacements again. The result is at most twice as long as
// the text, as long as shown isn't longer than the URL.
func Text(text string, secrets []string, whole, shown string) string {
	var found []replacement
	for _, secret := range secrets {
		found = appendFound(found, text, secret, "[secret]")
	}
	found = appendFound(found, text, whole, shown)
	path, query, _ := strings.Cut(strings.TrimPrefix(whole, shown), "?")
	parts := []string{path, strings.TrimPrefix(path, "/"), query}
	if decoded, err := url.PathUnescape(path); err == nil {
		parts = append(parts, decoded, strings.TrimPrefix(decoded, "/"))
	}
	fields, _ := url.ParseQuery(query) // as far as it can be parsed
	for _, values := range fields {
		for _, value := range values {
			if len(value) >= fragment { // a shorter one can be any word
				parts = append(parts, value)
			}
		}
	}
	for _, part := range parts {
		found = appendFound(found, text, part, "[path]")
	}
	slices.SortStableFunc(found, func(a, b replacement) int { return cmp.Compare(len(b.old), len(a.old)) })
	var pairs []string
	for _, r := range found {
		pairs = append(pairs, r.old, r.new)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

var (
	// userinfo finds the user name and password of a URL in a text, and pathAndQuery what comes
	// after the host and port.
	userinfo     = regexp.MustCompile(`(?i)(https?://)[^\s"/?#]*@`)
	pathAndQuery = regexp.MustCompile(`(?i)(https?://[^\s"/?#]*)[/?#][^\s"]*`)
)

// URLs returns a text in which every http and https URL shows only scheme, host and port. Use
// it after [Text], for URLs that you don't know.
func URLs(text string) string {
	return pathAndQuery.ReplaceAllString(userinfo.ReplaceAllString(text, "$1"), "$1/[path]")
}

type replacement struct{ old, new string }

// appendFound appends a replacement for each spelling of the secret in the text.
func appendFound(found []replacement, text, secret, replaced string) []replacement {
	if len(secret) < minSecret || len(secret) > len(text) { // no spelling is shorter, and a stranger's can be long
		return found
	}
	quoted := strconv.Quote(secret)
	quoted = quoted[1 : len(quoted)-1]
	inJSON, _ := json.Marshal(secret) // can't fail for a string
	for _, spelling := range []string{
		secret, quoted, string(inJSON[1 : len(inJSON)-1]), strings.ReplaceAll(quoted, "/", `\/`), // as PHP does
		html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret),
	} {
		if strings.Contains(text, spelling) {
			found = append(found, replacement{spelling, replaced})
		}
	}
	return found
}

// Quotes reports whether text contains eight consecutive bytes of the secret, or all of a
// shorter one. It ignores case, and also finds hexadecimal. It doesn't look for secrets of
// less than four bytes.
func Quotes(text, secret string) bool {
	if len(secret) < minSecret {
		return false
	}
	text = strings.ToLower(text)
	return overlap(text, strings.ToLower(secret)) || overlap(text, hex.EncodeToString([]byte(secret)))
}

// overlap reports whether text contains a fragment of the spelling. Both can be long, so it
// takes time proportional to the sum of their lengths.
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
