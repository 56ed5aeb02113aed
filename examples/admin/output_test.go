package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// silent is a store on a connection that is lost.
type silent struct{ operable }

func (silent) Resolve(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
	<-ctx.Done()
	return webhookcfg.Webhook{}, ctx.Err()
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := (patient{silent{}}).Resolve(t.Context(), "a", "e1"); !errors.Is(err, errSilent) {
			t.Errorf("a lost connection gives %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := (patient{silent{}}).Resolve(ctx, "a", "e1"); !errors.Is(err, context.Canceled) || errors.Is(err, errSilent) {
			t.Errorf("an interrupt gives %v", err)
		}
	})
}

// TestProgress: without a terminal there is a line every ten seconds.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	progress := (&session{stderr: &out}).progress(copied)
	for n := range 25 {
		progress(admin.Report{Changes: 10 * n, Elapsed: time.Duration(n) * time.Second})
	}
	const want = "copied: 0 clients with 0 webhooks, 100 changes in 10s (10 a second)\ncopied: 0 clients with 0 webhooks, 200 changes in 20s (10 a second)\n"
	if out.String() != want {
		t.Errorf("progress %q, want %q", &out, want)
	}
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"acme": "acme", "ä b": "ä b", " a": `" a"`, `"a"`: `"\"a\""`, "": `""`, "\x1b[2J": `"\x1b[2J"`, "\u202ea": `"\u202ea"`, "\xff": `"\xff"`,
	} {
		if got := printable(name); got != want {
			t.Errorf("printable(%q) is %s, want %s", name, got, want)
		}
	}
}

// TestReadme: README.md has every command.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !strings.Contains(string(readme), "`"+c.name+" STORE") && !strings.Contains(string(readme), "`"+c.name+" "+c.arguments) {
			t.Errorf("README.md lacks %s", c.name)
		}
	}
}

// TestPartial: the report of a copy that ended early says what is left to do.
func TestPartial(t *testing.T) {
	var out bytes.Buffer
	s := &session{stdout: bufio.NewWriter(&out)}
	r := admin.Report{Clients: 1, Partial: []string{"acme"}}
	if err := errors.Join(s.report(copied(r), "refused", r), s.stdout.Flush()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"copied: 1 clients", "partial: acme\n", "-replace"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q: %s", want, &out)
		}
	}
}

// full is an output that can't be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputFails(t *testing.T) {
	f := newFixture(t)
	var diagnostics bytes.Buffer
	if code := run(t.Context(), []string{"clients", f.at("webhooks")}, strings.NewReader(""), full{}, &diagnostics); code != failure {
		t.Errorf("exit code %d after %s", code, &diagnostics)
	}
}
