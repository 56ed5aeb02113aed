package redact_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/redact"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"acme":                          "acme",
		"Zo\u00eb \u4e16\u754c":         "Zo\u00eb \u4e16\u754c",
		"x\u009b2J\u009b1;31m\u202evil": "x2J1;31mvil",
		"\x1b[2Ja\x00b\x7fc":            "[2Jabc",
		"a\u200bb\u2066c\ufeffd\u2028e": "abcde",
		"one\ntwo\r\n\tthree":           "one two   three",
		"a\xff\xfeb\ufffd":              "ab",
	} {
		if got := redact.Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("x", 127)
	for text, want := range map[string]string{long + "xx": long + "x", long + "\u00e9": long, "\u202e" + long: long} {
		if got := redact.Presented(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestPrintableError: the error shows only what a log can, and matches its cause.
func TestPrintableError(t *testing.T) {
	err := redact.PrintableError(fmt.Errorf("key \u009b5m\u202e: %w", fs.ErrExist))
	shown := hooktest.Prints(err) + hooktest.Prints(struct{ Err error }{err})
	if strings.ContainsAny(err.Error()+shown, "\u009b\u202e") || !strings.Contains(shown, "key 5m: file already exists") || !errors.Is(err, fs.ErrExist) {
		t.Errorf("%+q", shown)
	}
}

func TestIdentifies(t *testing.T) {
	const secret = "t0ken-of-acme"
	for text, want := range map[string]bool{
		"": false, "e1": false, secret: true, "a" + secret + "b": true, "t0ken-of-acm": false, "t0ken\u200b-of-acme": true, "short": false,
	} {
		if got := redact.Identifies(text, "", "short", secret); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}
