package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
)

// print writes a record as JSON or, without -json, a line of text.
func (s *session) print(record any, format string, args ...any) error {
	if s.json {
		encoder := json.NewEncoder(s.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(record)
	}
	_, err := fmt.Fprintf(s.stdout, format+"\n", args...)
	return err
}

// escaper escapes what a terminal could interpret, or show in another order: everything but
// visible text, spaces, tabs and ends of lines. The result of valid JSON is the same JSON. Pass
// whole texts to Write.
type escaper struct{ w io.Writer }

func (e escaper) Write(text []byte) (int, error) {
	if _, err := e.w.Write(escape(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

func escape(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch high, low := utf16.EncodeRune(r); {
		case r == utf8.RuneError && size == 1:
			escaped = fmt.Appendf(escaped, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || unicode.IsGraphic(r):
			escaped = append(escaped, rest[:size]...)
		case high != unicode.ReplacementChar:
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		rest = rest[size:]
	}
	return escaped
}

// printable returns a name as it is, or quoted if a terminal could show it differently.
func printable(name string) string {
	isPlain := func(r rune) bool { return unicode.IsGraphic(r) && r != '"' && r != unicode.ReplacementChar }
	if strings.TrimFunc(name, isPlain) == "" && strings.TrimSpace(name) == name && name != "" {
		return name
	}
	return strconv.Quote(name)
}

// revealing adds the flag that shows whole URLs.
func revealing(s *session, flags *flag.FlagSet) {
	flags.BoolVar(&s.urls, "urls", false, "show URLs in full; their paths and queries are secrets")
}

// webhookRecord is a webhook in JSON.
type webhookRecord struct {
	Client string `json:"client"`
	// Entity is empty for the base.
	Entity string `json:"entity,omitzero"`
	Source string `json:"source"`
	URL    string `json:"url,omitzero"`
	// Sealed says that the URL is encrypted, and we don't have the keys.
	Sealed bool       `json:"sealed,omitzero"`
	Since  *time.Time `json:"since,omitempty"`
	// Rule says which rule of the policy the URL breaks.
	Rule string `json:"rule,omitzero"`
	// Delivery says how deliveries go, and Queue what waits for the client, if that's known.
	Delivery *deliveryRecord `json:"delivery,omitempty"`
	Queue    *queueRecord    `json:"queue,omitempty"`
}

func (s *session) record(client, entity string, hook webhookcfg.Webhook) webhookRecord {
	r := webhookRecord{Client: client, Entity: entity, Source: hook.Source.String(), URL: hook.URL.String()}
	if s.urls {
		r.URL = hook.URL.Reveal()
	}
	if r.Sealed = sealed.IsEnvelope(hook.URL); r.Sealed {
		r.URL = ""
	}
	if hook.Source != webhookcfg.SourceNone {
		since := hook.Since.UTC()
		r.Since = &since
	}
	return r
}

// String returns the entity, the source, the URL, the time and the rule, if they're set. How
// deliveries go and what waits is on lines of their own.
func (r webhookRecord) String() string {
	words := []string{"all entities:", r.Source}
	if r.Entity != "" {
		words[0] = "entity " + printable(r.Entity) + ":"
	}
	if r.URL != "" {
		words = append(words, printable(r.URL))
	}
	if r.Sealed {
		words = append(words, "encrypted")
	}
	if r.Since != nil {
		words = append(words, "since "+r.Since.Format(time.RFC3339Nano))
	}
	if r.Rule != "" {
		words = append(words, "("+r.Rule+")")
	}
	lines := []string{strings.Join(words, " ")}
	if r.Delivery != nil {
		lines = append(lines, r.Delivery.String())
	}
	if r.Queue != nil {
		lines = append(lines, "queue of "+r.Queue.text)
	}
	return strings.Join(lines, "\n")
}
