package portal_test

import (
	"bufio"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTour signs in, makes each change, sees its effect, and signs out.
func TestTour(t *testing.T) {
	f := newFixture(t)
	url := f.serve()
	b := newTab(t)
	b.open(url)
	b.expect("Sign in", "Client ID")
	b.fill("username", client)
	b.fill("password", "wrong-secret-12345")
	if status := b.button("Sign in"); status != 403 {
		t.Errorf("a wrong secret: %d", status)
	}
	b.expect("The ID or the secret is wrong")
	b.signIn()
	b.expect("There is no default", "No entity has a setting of its own")

	b.fill("id", "e1")
	b.fill("url", at+token)
	b.button("Set webhook")
	b.expect("The webhook is set.", "has a webhook of its own", at+"/••••")
	f.expect("e1", "override "+at+token)
	b.link("Show the full URL")
	b.expect(at + token)
	b.link("Hide it")
	b.button("Turn off")
	b.expect("This entity has no webhook now.", "there is no default")
	f.expect("e1", "none ")

	b.link("All webhooks")
	b.link("Set a default")
	b.fill("url", at+"/all")
	b.fill("confirm", "everything")
	b.button("Set for all entities")
	b.expect("type the word all")
	if got := b.value("url"); got != at+"/all" {
		t.Errorf("the URL that was typed is %q", got)
	}
	b.fill("confirm", "all")
	b.button("Set for all entities")
	b.expect("The default is set for all entities.")
	b.link("All webhooks")
	b.fill("find", "e2")
	b.button("Find")
	b.link("Open the entity")
	b.expect("so the default applies")
	b.button("Turn off")
	b.expect("turned off: it gets no notifications")
	f.expect("e2", "off ")
	b.link("All webhooks")
	b.expect("e2 Off")
	b.link("Change")
	b.expect("1 have their own")
	b.fill("remove-confirm", "all")
	b.button("Remove everything")
	b.expect("The webhooks of all entities are removed.")
	f.expect("e2", "none ")

	b.button("Sign out")
	b.expect("Client ID")
	b.run(chromedp.NavigateBack())
	b.expect("Client ID")
	b.open(url + "?page=all")
	b.expect("Client ID")
}

// TestWithoutScripts makes a change in a browser that runs no scripts.
func TestWithoutScripts(t *testing.T) {
	f := newFixture(t)
	b := newTab(t)
	b.run(emulation.SetScriptExecutionDisabled(true))
	b.open(f.serve())
	b.signIn()
	b.fill("id", "e1")
	b.fill("url", at)
	b.button("Set webhook")
	b.expect("The webhook is set.")
	f.expect("e1", "override "+at)
}

// keys presses keys, one after the other.
func (b *tab) keys(keys string) { b.t.Helper(); b.run(chromedp.KeyEvent(keys)) }

// focus presses Tab until the element with the label has the focus. You must be able to see
// the focus.
func (b *tab) focus(label string) {
	b.t.Helper()
	for range 40 {
		b.keys(kb.Tab)
		var got string
		b.run(chromedp.Evaluate(`(e => (e.labels && e.labels.length ? e.labels[0].innerText : e.innerText || "").trim() +
			(getComputedStyle(e).outlineStyle === "none" ? " (focus is invisible)" : ""))(document.activeElement)`, &got))
		if got == label {
			return
		}
	}
	b.t.Fatalf("the keyboard does not reach %q on %s", label, b.text())
}

// TestKeyboard signs in and makes a change with only the keyboard.
func TestKeyboard(t *testing.T) {
	f := newFixture(t)
	b := newTab(t)
	b.open(f.serve())
	b.focus("Client ID")
	b.run(input.InsertText(client))
	b.focus("Secret")
	b.run(input.InsertText(secret))
	b.load(chromedp.KeyEvent(kb.Enter))
	b.focus("Entity ID")
	b.run(input.InsertText("e1"))
	b.focus("URL")
	b.run(input.InsertText(at))
	b.load(chromedp.KeyEvent(kb.Enter))
	b.expect("The webhook is set.")
	b.focus("Turn off")
	b.load(chromedp.KeyEvent(kb.Enter))
	b.expect("This entity has no webhook now.")
	b.focus("← All webhooks")
	b.load(chromedp.KeyEvent(kb.Enter))
	b.focus("Set a default")
	b.load(chromedp.KeyEvent(kb.Enter))
	b.focus("URL")
	b.run(input.InsertText(at + "/all"))
	b.focus("Type the word all to confirm")
	b.run(input.InsertText("all"))
	b.focus("Set for all entities")
	b.load(chromedp.KeyEvent(kb.Enter))
	f.expect("e2", "base "+at+"/all")
	b.focus("Sign out")
	b.load(chromedp.KeyEvent(kb.Enter))
	b.expect("Client ID")
}

// TestBrokenConnection: if a connection breaks, Back shows what you typed.
func TestBrokenConnection(t *testing.T) {
	f := newFixture(t)
	url := f.serve()
	b := newTab(t)
	b.open(url)
	b.signIn()
	b.fill("id", "e1")
	b.fill("url", at+"/typed")
	f.isBroken.Store(true)
	b.run(chromedp.Click(`//button[normalize-space()="Set webhook"]`, chromedp.BySearch))
	b.await(`location.protocol`, "chrome-error:")
	f.isBroken.Store(false)
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		current, entries, err := page.GetNavigationHistory().Do(ctx)
		if err != nil {
			return err
		}
		return page.NavigateToHistoryEntry(entries[current-1].ID).Do(ctx)
	}))
	b.await(`document.readyState + " " + (document.getElementById("id") || {}).value + " " + (document.getElementById("url") || {}).value`, "complete e1 "+at+"/typed")
}

// await waits until a JavaScript expression has a value.
func (b *tab) await(expression, want string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	got := ""
	for got != want {
		err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) error {
			result, _, err := runtime.Evaluate(expression).Do(ctx)
			if err == nil {
				got = strings.Trim(string(result.Value), `"`)
			}
			return ctx.Err() // between two pages, you can't evaluate anything
		}))
		if err != nil {
			b.t.Fatalf("%s is %q, want %q: %v", expression, got, want, err)
		}
	}
}

// TestRevoked: the secret is revoked between the form and the POST, or the cookie is gone.
func TestRevoked(t *testing.T) {
	for name, end := range map[string]func(f *fixture, b *tab){
		"secret": func(f *fixture, _ *tab) { f.verifier.set(webhookcfg.ErrInvalidCredentials) },
		"cookie": func(_ *fixture, b *tab) { b.clearCookies() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			b := newTab(t)
			b.open(f.serve())
			b.signIn()
			b.fill("id", "e1")
			b.fill("url", at+token)
			end(f, b)
			b.button("Set webhook")
			b.expect("What you typed comes back after you sign in.")
			f.expect("e1", "none ")
			f.verifier.set(nil)
			b.signIn()
			b.expect("What you typed is still here")
			f.expect("e1", "none ")
			if got := b.value("url"); got != at+token {
				t.Errorf("what was typed is %q", got)
			}
			b.button("Set webhook")
			f.expect("e1", "override "+at+token)
		})
	}
}

// TestHostSession uses the host's session and layout. If the session ends, you don't lose
// what you typed.
func TestHostSession(t *testing.T) {
	f := newFixture(t).hosted()
	b := newTab(t)
	b.open(f.serve())
	b.expect("You're not signed in", "The host's own header")
	b.shoot("host-signed-out")
	b.link("Go to the sign-in")
	b.expect("Signed in as ann")
	b.fill("id", "e1")
	b.fill("url", at+token)
	b.clearCookies()
	b.button("Set webhook")
	b.expect("What you typed is kept", at+token)
	f.expect("e1", "none ")
	b.shoot("host-kept")
	page := newTab(t)
	page.open(f.server.URL + "/login") // in another tab
	b.button("Send it again")
	b.expect("The webhook is set.")
	b.shoot("host-entity")
	f.expect("e1", "override "+at+token)
}

// TestResume: a stopped base and a stopped override go on when a test reaches their server,
// each by itself. The overrides stay.
func TestResume(t *testing.T) {
	f := newFixture(t)
	var isRepaired atomic.Bool
	receiver := func() string { // of its own, because a client can test each every ten seconds
		return hooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isRepaired.Load() || r.URL.Path == "/e2" {
				w.WriteHeader(http.StatusGone)
			}
		})).URL
	}
	base, e1, e2 := receiver(), receiver()+"/e1", receiver()+"/e2"
	f.apply(set(webhookcfg.All(), base), set(webhookcfg.Entity("e1"), e1), set(webhookcfg.Entity("e2"), e2))
	send := f.deliver()
	for _, entity := range []string{"e1", "e2", "e3"} {
		if got := send(entity); got != deliver.ReasonGone {
			t.Fatalf("%s: %q", entity, got)
		}
	}
	b := newTab(t)
	b.open(f.serve())
	b.signIn()
	b.link("e2")
	b.expect("Stopped")
	b.button("Send a test")
	b.expect("The test failed.", "the webhook is gone (410)", "Stopped")
	isRepaired.Store(true)
	b.link("All webhooks")
	b.link("Change")
	b.expect("Stopped")
	b.button("Send a test")
	b.expect("The test was accepted by your server.", "Delivered")
	b.link("All webhooks")
	b.link("e1")
	b.expect("Stopped")
	b.button("Send a test")
	b.expect("The test was accepted by your server.", "Delivered")
	for entity, want := range map[string]deliver.Reason{"e1": "", "e2": deliver.ReasonStopped, "e3": ""} {
		if got := send(entity); got != want {
			t.Errorf("%s after the tests: %q, want %q", entity, got, want)
		}
	}
	f.expect("e1", "override "+e1)
	f.expect("e2", "override "+e2)
	f.expect("e3", "base "+base)
}

// TestExample signs in to examples/server as the README says.
func TestExample(t *testing.T) {
	b := newTab(t)
	program := filepath.Join(t.TempDir(), "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/server")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := exec.CommandContext(t.Context(), program, "-listen", "127.0.0.1:0", "-dev")

	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	var id, password, page string
	for lines := bufio.NewScanner(out); page == "" && lines.Scan(); {
		if _, pair, ok := strings.Cut(lines.Text(), "export CLIENT="); ok {
			pair, _, _ = strings.Cut(pair, " ")
			id, password, _ = strings.Cut(pair, ":")
		}
		_, page, _ = strings.Cut(lines.Text(), "page for people: ")
	}
	b.open(page)
	b.fill("username", id)
	b.fill("password", password)
	b.button("Sign in")
	b.fill("id", "e1")
	b.fill("url", at)
	b.button("Set webhook")
	b.expect("The webhook is set.", id)
}
