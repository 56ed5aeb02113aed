package support_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"example.com/go-webhookcfg/webhookcfg/portal"
)

// pageAccount is a client of the running service who uses its page.
type pageAccount struct {
	t           *testing.T
	url, secret string
	ctx         context.Context // the tab; nil at first
	clicked     int
	shots       int
}

func openPage(t *testing.T) account {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: test needs Chromium")
	}
	a := &pageAccount{t: t}
	store := "sqlite:" + filepath.Join(t.TempDir(), "service.db")
	out, err := exec.CommandContext(t.Context(), program, "-migrate", "-store", store, "add", client).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, a.secret, _ = strings.Cut(strings.TrimSpace(string(out)), ":")
	cmd := exec.Command(program, "-listen", "127.0.0.1:0", "-dev", "-store", store, "-timeout", "500ms", "-schedule", schedule)
	cmd.Env = append(os.Environ(), "MASTER=a-master-of-at-least-thirty-two-bytes")
	var log bytes.Buffer
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the service doesn't listen")
	}
	a.url = "http://" + lines.Text()
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return a
}

// call sends a request of the client.
func (a *pageAccount) call(method, path, body string, response any) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(client, a.secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		a.t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	if err := json.NewDecoder(resp.Body).Decode(response); err != nil {
		a.t.Fatal(err)
	}
}

const api = "/api/v1/configure/configure-webhook"

func (a *pageAccount) set(entity, url string) {
	body := map[string]string{"webhook_url": url}
	if entity != "" {
		body["endpoint_id"] = entity
	}
	text, _ := json.Marshal(body)
	a.call("POST", api, string(text), new(any))
}

func (a *pageAccount) unset(entity string) { a.call("DELETE", api+"/"+entity, "", new(any)) }

func (a *pageAccount) key() string {
	var response struct{ Key string }
	a.call("GET", "/api/v1/signing-key", "", &response)
	return response.Key
}

func (a *pageAccount) change(entity string) string {
	var response struct{ Version int64 }
	a.call("PUT", "/api/v1/modules/"+entity, "any state", &response)
	return body(entity, response.Version)
}

func (a *pageAccount) run(actions ...chromedp.Action) {
	a.t.Helper()
	if err := chromedp.Run(a.ctx, actions...); err != nil {
		a.t.Fatalf("%v\n%s", err, a.text())
	}
}

func (a *pageAccount) text() (text string) {
	ctx, cancel := context.WithTimeout(a.ctx, 5*time.Second)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &text))
	return strings.Join(strings.Fields(text), " ")
}

// click follows a link or presses a button, and waits for the page that it leads to.
func (a *pageAccount) click(selector string, want ...string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, 20*time.Second)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(selector, chromedp.BySearch)); err != nil {
		a.t.Fatalf("%s: %v\n%s", selector, err, a.text())
	}
	a.clicked++
	a.shoot()
	a.expect(want...)
}

func link(text string) string   { return fmt.Sprintf(`//a[contains(normalize-space(),%q)]`, text) }
func button(text string) string { return fmt.Sprintf(`//button[normalize-space()=%q]`, text) }

func (a *pageAccount) expect(texts ...string) {
	a.t.Helper()
	page := a.text()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			a.t.Fatalf("want %q in %s", text, page)
		}
	}
}

func (a *pageAccount) fill(id, text string) {
	a.t.Helper()
	a.run(chromedp.Evaluate(fmt.Sprintf(`document.getElementById(%q).value = ""`, id), nil), chromedp.SendKeys("#"+id, text, chromedp.ByQuery))
}

func (a *pageAccount) shoot() {
	if *screenshots == "" {
		return
	}
	var png []byte
	a.run(chromedp.FullScreenshot(&png, 100))
	a.shots++
	name := strings.NewReplacer("/", "-", " ", "-").Replace(a.t.Name())
	if err := os.WriteFile(filepath.Join(*screenshots, fmt.Sprintf("%s-%d.png", name, a.shots)), png, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// sees signs in, and looks at the overview until it says what is wrong.
func (a *pageAccount) sees(reason string) {
	a.t.Helper()
	ctx, closeTab := chromedp.NewContext(chromium)
	a.t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	a.t.Cleanup(cancel)
	a.ctx = ctx
	a.run(network.Enable(), network.ClearBrowserCookies(), chromedp.Navigate(a.url+"/portal/"))
	a.fill("username", client)
	a.fill("password", a.secret)
	a.click(button("Sign in"), "Signed in as")
	want := []string{"What is wrong", "Not delivered: "}
	if reason != "" {
		want = append(want, portal.Texts()["reason."+reason])
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		page := a.text()
		var n int
		_, after, _ := strings.Cut(page, "Not delivered: ")
		_, _ = fmt.Sscan(after, &n)
		isShown := n >= missing
		for _, text := range want {
			isShown = isShown && strings.Contains(page, text)
		}
		if isShown {
			break
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("want %q in %s", want, page)
		}
		a.run(chromedp.Navigate(a.url + "/portal/"))
	}
	a.shoot()
}

func (a *pageAccount) toOverview() {
	a.t.Helper()
	if !strings.Contains(a.text(), "Entities with a setting of their own") {
		a.click(link("All webhooks"))
	}
}

func (a *pageAccount) readKey() (key string) {
	a.t.Helper()
	a.toOverview()
	a.click(link("Show the signing key"), "whsec_")
	a.run(chromedp.Text("code.key", &key, chromedp.ByQuery))
	return key
}

func (a *pageAccount) test() {
	a.t.Helper()
	a.toOverview()
	a.click(button("Send a test"), "The test was accepted by your server.")
}

func (a *pageAccount) setAll(url string) {
	a.t.Helper()
	a.click(link("Change"))
	a.fill("url", url)
	a.fill("confirm", "all")
	a.click(button("Set for all entities"), "The default is set for all entities.")
}

func (a *pageAccount) tryAndSetAll(url string) {
	a.t.Helper()
	a.click(link("Change"))
	a.fill("url", url)
	a.click(button("Try it"), "Your server accepted the test.")
	a.fill("confirm", "all")
	a.click(button("Set for all entities"), "The default is set for all entities.")
}

func (a *pageAccount) setEntity(entity, url string) {
	a.t.Helper()
	a.click(fmt.Sprintf(`//section[@aria-labelledby="list"]//a[normalize-space()=%q]`, entity), "turned off")
	a.fill("url", url)
	a.click(button("Set webhook"), "The webhook is set.")
}

func (a *pageAccount) sendAllAgain() {
	a.t.Helper()
	if !strings.Contains(a.text(), "Send all again") {
		a.toOverview()
	}
	if !strings.Contains(a.text(), "Send all again") {
		return // the new webhook has got them already
	}
	a.click(link("Send all again"), "How far back:")
	if strings.Contains(a.text(), "There is nothing to send again") {
		return
	}
	a.click(button("Send them again"), "They're being queued again.")
}

func (a *pageAccount) sendAgain(string) {
	a.t.Helper()
	a.click(link("Send all again"), "notifications that were given up or dropped")
	a.click(button("Send them again"), "They're being queued again.")
}

func (a *pageAccount) clicks() int { return a.clicked }
