// Package portal_test uses the pages of package portal in Debian's Chromium: with and without
// scripts, by mouse and by keyboard, directly and behind a proxy.
package portal_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

var (
	screenshots = flag.String("screenshots", "", "`directory` to write a screenshot of every page to")
	picture     = flag.String("picture", "", "`file` to write the picture of the README to")
)

// chromium is the browser that all tests share. With -short it's nil.
var chromium context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	if out, err := exec.Command("chromium", "--version").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "chromium: %v: run internal/integration/install.sh\n%s", err, out)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(900, 1000), chromedp.Flag("disable-gpu", true), chromedp.Flag("host-resolver-rules", "MAP "+staging+" 127.0.0.1"), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	browser, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	chromium = browser
	return m.Run()
}

// staging is a host name that leads to the tests' servers. Browsers trust http on localhost
// like https, but not there.
const staging = "staging.example"

// tab is a tab of the browser. It has no cookies at first.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func newTab(t *testing.T) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: test needs Chromium")
	}
	ctx, closeTab := chromedp.NewContext(chromium)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t, ctx}
	b.run(network.Enable(), network.ClearBrowserCookies())
	return b
}

// run runs actions, which must not fail.
func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.failed())
	}
}

// load runs actions that lead to another page, and waits for it. It returns the status.
func (b *tab) load(actions ...chromedp.Action) (status int64) {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, actions...)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, b.failed())
	}
	if response == nil {
		return 0
	}
	return response.Status
}

func (b *tab) failed() (text string) {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &text))
	return text
}

func (b *tab) open(url string) int64 { b.t.Helper(); return b.load(chromedp.Navigate(url)) }

// button presses the button with a label.
func (b *tab) button(label string) int64 {
	b.t.Helper()
	return b.load(chromedp.Click(fmt.Sprintf(`//button[normalize-space()=%q]`, label), chromedp.BySearch))
}

// link follows the link with a text.
func (b *tab) link(text string) int64 {
	b.t.Helper()
	return b.load(chromedp.Click(fmt.Sprintf(`//a[contains(normalize-space(),%q)]`, text), chromedp.BySearch))
}

// fill types text into a field, and replaces the field's content.
func (b *tab) fill(id, text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.getElementById(%q).value = ""`, id), nil), chromedp.SendKeys("#"+id, text, chromedp.ByQuery))
}

func (b *tab) value(id string) (value string) {
	b.t.Helper()
	b.run(chromedp.Value("#"+id, &value, chromedp.ByQuery))
	return value
}

// text returns the page's text without line breaks.
func (b *tab) text() (text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`document.body.innerText`, &text))
	return strings.Join(strings.Fields(text), " ")
}

// expect fails unless the page has all of the texts.
func (b *tab) expect(texts ...string) {
	b.t.Helper()
	page := b.text()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.t.Fatalf("want %q in %s", text, page)
		}
	}
}

func (b *tab) url() (url string) {
	b.t.Helper()
	b.run(chromedp.Location(&url))
	return url
}

// signIn signs in on the page that asks for it.
func (b *tab) signIn() {
	b.t.Helper()
	b.fill("username", client)
	b.fill("password", secret)
	b.button("Sign in")
	b.expect("Signed in as")
}

// shoot writes a screenshot of the whole page if the flag is set.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	var png []byte
	b.run(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
