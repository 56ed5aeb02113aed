package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
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

// TestTerminal: no command passes on what a terminal would interpret, whatever the names in a
// store, the path of a store or an argument contain. JSON still has the names.
func TestTerminal(t *testing.T) {
	f := newFixture(t)
	var names []string
	for _, odd := range []string{"\x1b]0;OSC\x07", "\u009b31mC1", "b\u202eid\u2066i", "x\rOVER", "nl\nx", "tag\U000e0041"} {
		names = append(names, odd)
		f.apply(f.at("webhooks"), setAll(odd),
			webhookcfg.SetChange(odd, webhookcfg.Entity(odd), egress.NewURL("https://\x1b[31mh/"+secret)),
			webhookcfg.SetChange("a", webhookcfg.Entity(odd), egress.NewURL("http://h.example/"+secret)))
	}
	odd := names[1]
	f.run(t.Context(), success, "", "", "copy", "-migrate", f.at("webhooks"), f.at("other"))
	f.apply(f.at("webhooks"), webhookcfg.UnsetChange("a", webhookcfg.All()))
	f.apply(f.at("other"), setAll(odd))
	for _, args := range [][]string{
		{"clients", f.at("webhooks")},
		{"list", f.at("webhooks"), odd},
		{"list", "-urls", f.at("webhooks"), odd},
		{"show", f.at("webhooks"), odd, odd},
		{"verify", f.at("webhooks"), f.at("other")},
		{"audit", f.at("webhooks")},
		{"unset", f.at("webhooks"), odd, odd},
		{"unset", "-all", f.at("webhooks"), odd},
		{"erase", f.at("webhooks"), odd},
		{"check", f.at(odd)},
		{"show", "file:" + odd, odd, odd},
		{"clients", "-" + odd, f.at("webhooks")},
	} {
		for _, flags := range [][]string{nil, {"-json"}} {
			args := slices.Concat(args[:1], flags, args[1:])
			var out, diagnostics bytes.Buffer
			run(t.Context(), args, strings.NewReader(""), &out, &diagnostics)
			for _, r := range out.String() + diagnostics.String() {
				if !unicode.IsGraphic(r) && r != '\n' && r != '\t' {
					t.Errorf("%q: %q in %q %q", args, r, &out, &diagnostics)
					break
				}
			}
			if len(flags) > 0 {
				continue
			}
			for _, name := range names { // an end of a line in a name doesn't start a line
				if _, after, ok := strings.Cut(name, "\n"); ok && strings.Contains(out.String(), "\n"+after) {
					t.Errorf("%q: a name has two lines: %s", args, &out)
				}
			}
		}
	}
	var got []string
	for line := range strings.Lines(f.output("clients", "-json", f.at("webhooks"))) {
		var r clientRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, r.Client)
	}
	for _, name := range names {
		if !slices.Contains(got, name) {
			t.Errorf("JSON lacks %q: %q", name, got)
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
	s := &session{stdout: &out}
	r := admin.Report{Clients: 1, Partial: []string{"acme"}}
	if err := s.report(copied(r), "refused", r); err != nil {
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
