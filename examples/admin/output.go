package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"example.com/go-webhookcfg/store/admin"
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

// progress shows the progress on the standard error stream, in the words of describe. A
// terminal has it in one line. Otherwise it's a line every ten seconds.
func (s *session) progress(describe func(admin.Report) string) func(admin.Report) {
	if isTerminal(s.screen) {
		return func(r admin.Report) { fmt.Fprint(s.screen, clearLine+describe(r)) }
	}
	var shown time.Duration
	return func(r admin.Report) {
		if r.Elapsed-shown >= 10*time.Second {
			shown = r.Elapsed
			fmt.Fprintln(s.stderr, describe(r))
		}
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
