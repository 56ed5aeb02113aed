package portal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// paths are the pages for a person who is signed in.
var paths = []string{"", "?after=orders-1", "?after=orders-2", "?find=orders", "?find=x", "?page=entity&id=billing-eu", "?page=entity&id=billing-eu&show=1", "?page=entity&id=orders-1", "?page=entity&id=orders-2", "?page=entity&id=archive", "?page=entity&id=new", "?page=all", "?page=key", "?page=key&id=orders-1", "?page=sample", "?page=sample&id=orders-1&lang=java&show=1", "?page=notifications", "?page=notifications&state=dropped&id=orders-1", "?page=notifications&after=x", "?page=notification&message=msg_00000000000000000000000000000000", "?page=notification&message=msg_00000000000000000000000000000003", "?page=notification&message=x", "?page=again&id=orders-1", "?page=again-all&since=day", "?page=nothing"}

// axe returns the source of axe-core, which npm installs.
func axe(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: test needs Chromium and npm")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("npm")); err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v: run internal/integration/install.sh\n%s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// finding is a rule of axe-core that a page breaks.
type finding struct {
	ID    string   `json:"id"`
	Nodes []string `json:"nodes"`
}

func (b *tab) findings(axe string) (found []finding) {
	b.t.Helper()
	var loaded string
	b.run(chromedp.Evaluate(axe+"; typeof window.axe", &loaded), chromedp.Evaluate(`axe.run().then(r => r.violations.map(v => ({id: v.id, nodes: v.nodes.map(n => n.html)})))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return found
}

// looks are the ways in which a page can be shown.
var looks = []struct {
	name, scheme string
	width        int64
}{{"light", "light", 900}, {"dark", "dark", 900}, {"narrow", "light", 360}, {"narrow-dark", "dark", 360}}

// TestAccessibility: axe-core finds nothing on any page, in light and dark mode and at 360
// pixels of width. At that width, you don't have to scroll sideways either.
func TestAccessibility(t *testing.T) {
	source := axe(t)
	f := populated(t)
	url := f.serve()
	b := newTab(t)
	b.open(f.server.URL + "/nothing") // JSON without a title or a language
	if found := b.findings(source); len(found) == 0 {
		t.Error("axe-core finds nothing on a page that is not accessible")
	}
	for _, look := range looks {
		b.clearCookies()
		b.run(emulation.SetDeviceMetricsOverride(look.width, 800, 1, false),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}))
		check := func(name string) {
			t.Helper()
			for _, f := range b.findings(source) {
				t.Errorf("%s, %s: %s %q", look.name, name, f.ID, f.Nodes)
			}
			var width int64
			b.run(chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
			if width > look.width {
				t.Errorf("%s, %s: %d pixels wide", look.name, name, width)
			}
			b.shoot(name + "-" + look.name)
		}
		b.open(url)
		check("sign-in")
		b.fill("username", client)
		b.fill("password", "wrong-secret-12345")
		b.button("Sign in")
		check("sign-in-error")
		b.signIn()
		for i, path := range paths {
			b.open(url + path)
			check(fmt.Sprintf("%02d", i))
		}
		b.open(url + "?page=entity&id=orders-1")
		b.fill("url", "http://10.0.0.1/")
		b.button("Set webhook")
		check("entity-error")
		b.button("Send a test")
		check("test-error")
		b.open(url + "?page=entity&id=orders-1")
		b.fill("url", at)
		b.button("Try it")
		b.expect("Nothing was changed")
		check("try")
		b.link("Send all again")
		b.button("Send them again")
		b.expect("They're being queued again.")
		check("again-done")
		b.open(url + "?page=all")
		b.fill("url", at)
		b.fill("confirm", "everything")
		b.button("Set for all entities")
		check("all-error")
		b.open(url + "?page=entity&id=new-" + look.name)
		b.fill("url", at)
		b.button("Set webhook")
		b.expect("The webhook is set.")
		check("entity-done")
		b.fill("url", at)
		b.clearCookies()
		b.button("Set webhook")
		check("kept")
	}
}

// TestPicture takes the README's screenshot.
func TestPicture(t *testing.T) {
	if *picture == "" {
		t.Skip("make picture runs it")
	}
	f := populated(t)
	url := f.serve()
	b := newTab(t)
	b.run(emulation.SetDeviceMetricsOverride(760, 690, 1, false))
	b.open(url)
	b.signIn()
	b.open(url + "?page=entity&id=orders-2")
	var png []byte
	b.run(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(*picture, png, 0o600); err != nil {
		t.Fatal(err)
	}
}
