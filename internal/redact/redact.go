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
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	// minSecret is the shortest secret to look for. A path or a guess of a letter or two is
	// no secret, and you'd find it in every text.
	minSecret = 4
	// If a text has this many consecutive bytes of a secret, that's not a coincidence.
	fragment = 8
	// maxSearched is the length of the longest text that Text searches. A stranger can choose
	// both the text and many different secrets, and then the time for one is a multiple of that
	// for the other.
	maxSearched = 8 << 10
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

// Text returns text without secrets, and without what [URLs] removes. See [Known]. If the text
// has more than 8 KiB, Text returns a sentence that withholds it, since a part of it could end
// within a secret.
func Text(text string, secrets []string, whole, shown string) string {
	if len(text) > maxSearched {
		return fmt.Sprintf("withheld: it has %d bytes, too many to look for secrets", len(text))
	}
	return replaceKnown(text, appendURLs(nil, text), secrets, whole, shown)
}

// Known returns text without secrets. It replaces each secret with "[secret]", the whole URL
// with shown, which is the part that may be seen, and the URL's path or query with "[path]".
// The path is found with and without the slashes at its ends, and decoded too. A value in the query is
// found if it has at least eight bytes.
//
// Known finds them in plain spelling, quoted as in Go or JSON, and escaped as in HTML or a URL,
// if they have at least four bytes. Where several overlap, the text shows what replaces the
// first of them, or the longest if they start at the same place. So a secret or a URL that a
// stranger has chosen can't hide a part of another one. The result is at most twice as long as
// the text, as long as shown isn't longer than the URL.
//
// Known searches a text of any length, for as long as that takes. The memory that it needs is in
// proportion to the text and what to look for, however often they match.
func Known(text string, secrets []string, whole, shown string) string {
	return replaceKnown(text, nil, secrets, whole, shown)
}

// replaceKnown replaces spans that were found before, and what Known finds.
func replaceKnown(text string, found []span, secrets []string, whole, shown string) string {
	// A stranger can make each of many secrets match everywhere. Only the longest span at a
	// place has an effect, so we don't keep others.
	longest := make([]span, len(text))
	keep := func(s span) {
		if s.end > longest[s.start].end {
			longest[s.start] = s
		}
	}
	for _, s := range found {
		keep(s)
	}
	for spelling, by := range spellings(known(secrets, whole, shown), len(text)) {
		for from := 0; ; {
			at := strings.Index(text[from:], spelling)
			if at < 0 {
				break
			}
			end := from + at + len(spelling)
			keep(span{from + at, end, by})
			from = end
		}
	}
	return replace(text, longest)
}

// secret is what to look for, and what replaces it.
type secret struct{ text, by string }

// known returns what Known looks for.
func known(secrets []string, whole, shown string) []secret {
	var known []secret
	for _, text := range secrets {
		known = append(known, secret{text, "[secret]"})
	}
	known = append(known, secret{whole, shown})
	path, query, _ := strings.Cut(strings.TrimPrefix(whole, shown), "?")
	parts := []string{path, strings.Trim(path, "/"), query}
	if decoded, err := url.PathUnescape(path); err == nil {
		parts = append(parts, decoded, strings.Trim(decoded, "/"))
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
		known = append(known, secret{part, "[path]"})
	}
	return known
}

// spellings returns what replaces each spelling of the secrets in a text of this length. Of
// secrets that are spelled the same, the first decides.
func spellings(secrets []secret, length int) map[string]string {
	by, seen := make(map[string]string), make(map[string]bool)
	for _, s := range secrets {
		if seen[s.text] || len(s.text) < minSecret || len(s.text) > length { // no spelling is shorter, and a stranger's can be long
			continue
		}
		seen[s.text] = true
		quoted := strconv.Quote(s.text)
		quoted = quoted[1 : len(quoted)-1]
		inJSON, _ := json.Marshal(s.text) // can't fail for a string
		for _, spelling := range []string{
			s.text, quoted, string(inJSON[1 : len(inJSON)-1]), strings.ReplaceAll(quoted, "/", `\/`), // as PHP does
			html.EscapeString(s.text), url.QueryEscape(s.text), url.PathEscape(s.text),
		} {
			if _, found := by[spelling]; !found && len(spelling) <= length {
				by[spelling] = s.by
			}
		}
	}
	return by
}

// URLs returns a text in which every http and https URL shows only scheme, host and port.
func URLs(text string) string { return replace(text, appendURLs(nil, text)) }

// span is a part of a text, and what replaces it. If it's empty, nothing does.
type span struct {
	start, end int
	by         string
}

// replace replaces spans of a text, in the order in which they start, and what several of them
// cover once.
func replace(text string, spans []span) string {
	var out strings.Builder
	end := 0
	for _, s := range spans {
		if s.end > 0 && s.start >= end {
			out.WriteString(text[end:s.start])
			out.WriteString(s.by)
		}
		end = max(end, s.end)
	}
	out.WriteString(text[end:])
	return out.String()
}

// anyURL finds a URL, with its authority and what follows that.
var anyURL = regexp.MustCompile(`(?i)https?://([^\s"/?#]*)([/?#][^\s"]*)?`)

// appendURLs appends the user name and password of each URL in the text, and its path and query.
func appendURLs(found []span, text string) []span {
	for _, at := range anyURL.FindAllStringSubmatchIndex(text, -1) {
		if user := strings.LastIndexByte(text[at[2]:at[3]], '@') + 1; user > 0 {
			found = append(found, span{at[2], at[2] + user, ""})
		}
		if at[4] >= 0 {
			path := strings.TrimRight(text[at[4]:at[5]], ":;,") // of the sentence
			found = append(found, span{at[4], at[4] + len(path), "/[path]"})
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
