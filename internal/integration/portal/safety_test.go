package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func (b *tab) clearCookies() { b.t.Helper(); b.run(network.ClearBrowserCookies()) }

// TestOtherOrigins: a form and a fetch from another port or another host change nothing. The
// browser sends both, and the form with the cookie.
func TestOtherOrigins(t *testing.T) {
	f := newFixture(t)
	url := f.serve()
	b := newTab(t)
	b.open(url)
	b.signIn()
	attack := fmt.Sprintf(`<form id="form" method="post" action="%s?page=set"><input name="id" value="e1"><input name="url" value="%s"></form>`, url, at)
	fetches := fmt.Sprintf(`fetch("%s?page=set", {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "id=e1&url=%s"}).catch(() => {}).then(() => "sent")`, url, at) // the response may not be loaded
	evil := otherOrigin(t, attack)
	for _, from := range []string{evil, strings.Replace(evil, "127.0.0.1", "evil.localhost", 1)} {
		b.open(from)
		var sent string
		b.run(chromedp.Evaluate(fetches, &sent, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if status := b.load(chromedp.Evaluate(`document.getElementById("form").submit()`, nil)); status != http.StatusForbidden || sent != "sent" {
			t.Errorf("from %s: %d, fetch %q", from, status, sent)
		}
		b.expect("This form was sent from another site")
		f.expect("e1", "none ")
	}
	b.open(url + "?page=entity&id=e1")
	b.fill("url", at)
	b.button("Set webhook") // the portal's own form works
	f.expect("e1", "override "+at)
}

// TestPlainHTTP: forms work over http too, where browsers send no Sec-Fetch-Site, and the
// portal has to compare Origin with Host.
func TestPlainHTTP(t *testing.T) {
	f := newFixture(t).hosted()
	f.serve()
	b := newTab(t)
	url := strings.Replace(f.server.URL, "127.0.0.1", staging, 1)
	b.open(url + "/login")
	b.expect("Signed in as ann")
	b.fill("id", "e1")
	b.fill("url", at)
	b.button("Set webhook")
	b.expect("has a webhook of its own")
	f.expect("e1", "override "+at)
}

// TestNoPrompt: no page opens the browser's own password prompt. The API does, so we know
// that the test would notice.
func TestNoPrompt(t *testing.T) {
	f := newFixture(t)
	url := f.serve()
	b := newTab(t)
	var prompts atomic.Int64
	chromedp.ListenTarget(b.ctx, func(event any) {
		switch event := event.(type) {
		case *fetch.EventAuthRequired:
			prompts.Add(1)
			go b.answer(fetch.ContinueWithAuth(event.RequestID, &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}))
		case *fetch.EventRequestPaused:
			go b.answer(fetch.ContinueRequest(event.RequestID))
		}
	})
	b.run(fetch.Enable().WithHandleAuthRequests(true))
	b.open(url)
	b.fill("username", client)
	b.fill("password", "wrong-secret-12345")
	b.button("Sign in")
	b.signIn()
	f.verifier.set(fmt.Errorf("broken on purpose"))
	b.open(url + "?page=all")
	f.verifier.set(nil)
	b.open(url + "?page=all")
	b.button("Sign out")
	if n := prompts.Load(); n != 0 {
		t.Errorf("%d prompts", n)
	}
	b.open(f.server.URL + "/api/v1/configure/configure-webhook/e1")
	if prompts.Load() == 0 {
		t.Error("the test doesn't see prompts")
	}
}

// answer answers an event of the browser from another goroutine.
func (b *tab) answer(action chromedp.Action) {
	c := chromedp.FromContext(b.ctx)
	_ = action.Do(cdp.WithExecutor(b.ctx, c.Target)) // an error means that the tab is closed
}

// TestProxy: the portal works behind nginx, both with nginx's default Host and at another path,
// even if a link spells that path in a way that leads elsewhere.
func TestProxy(t *testing.T) {
	f := newFixture(t)
	f.serve()
	if testing.Short() {
		t.Skip("-short: test needs nginx")
	}
	upstream := strings.TrimPrefix(f.server.URL, "http://")
	nginx := engine.Daemon{
		Paths: []string{"usr/sbin/nginx"}, Package: "nginx",
		Configure: func(i engine.Instance) ([]string, error) {
			file, err := i.Write("nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server {
		listen 127.0.0.1:%[2]s;
		location /settings/hooks { proxy_pass http://%[3]s/portal; }
	}
}
`, i.Dir, i.Port, upstream))
			return []string{"-p", i.Dir, "-e", "stderr", "-c", file}, err
		},
	}
	b := newTab(t)
	url := "http://" + nginx.Start(t) + "/settings/hooks"
	b.open(url)
	b.signIn()
	b.fill("id", "e1")
	b.fill("url", at)
	b.button("Set webhook")
	b.expect("The webhook is set.")
	if got := b.url(); got != url+"?page=entity&id=e1" {
		t.Errorf("at %s", got)
	}
	f.expect("e1", "override "+at)
	check := func() {
		t.Helper()
		var color string
		b.run(chromedp.Evaluate(`getComputedStyle(document.querySelector(".main")).backgroundColor`, &color))
		if color == "rgba(0, 0, 0, 0)" {
			t.Error("the stylesheet is missing")
		}
	}
	check()
	b.button("Sign out")
	b.expect("Client ID")
	// nginx decodes paths, so a link can spell this one as if it were below another. The page that
	// it leads to sends nothing there.
	odd := strings.Replace(url, "settings/hooks", "in/mallory/..%2f..%2fsettings%2fhooks", 1)
	b.open(odd + "?page=entity&id=e1")
	b.signIn()
	b.expect("e1")
	if got := b.url(); got != odd+"?page=entity&id=e1" {
		t.Errorf("at %s", got)
	}
	check()
	b.button("Turn off")
	f.expect("e1", "none ")
}

// TestPolicy: the policy of a page blocks nothing that the page needs. No page runs a script
// or can be framed.
func TestPolicy(t *testing.T) {
	f := populated(t)
	url := f.serve()
	b := newTab(t)
	var complaints atomic.Int64
	listen(b.ctx, func(text string) { complaints.Add(1); t.Log(text) })
	b.open(url)
	b.signIn()
	for _, path := range paths {
		b.open(url + path)
	}
	if n := complaints.Load(); n != 0 {
		t.Errorf("%d messages in the console", n)
	}
	frame := otherOrigin(t, fmt.Sprintf(`<iframe src="%s"></iframe>`, url))
	b.open(frame)
	var framed string
	b.run(chromedp.Evaluate(`String(document.querySelector("iframe").contentDocument)`, &framed))
	if framed != "null" {
		t.Errorf("framed: %s", framed)
	}
}

// listen passes on a page's console output, and anything that its policy blocks.
func listen(ctx context.Context, got func(text string)) {
	chromedp.ListenTarget(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventConsoleAPICalled:
			got(fmt.Sprint(event.Type))
		case *runtime.EventExceptionThrown:
			got(event.ExceptionDetails.Text)
		}
	})
}
