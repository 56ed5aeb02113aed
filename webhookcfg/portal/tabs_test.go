package portal_test

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// pair is a verifier for two clients, whose secret is the same.
type pair struct{}

func (pair) Verify(_ context.Context, id, password string) (webhookcfg.Client, error) {
	if (id != "anna" && id != "bert") || password != secret {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: "client-of-" + id}, nil
}

var clientField = regexp.MustCompile(`name="client" value="([^"]*)"`)

// TestTwoTabs: a form that was shown for one client changes nothing once the person has
// signed in for another, in another tab. They see whom they act for, and keep what they typed,
// but not the word that confirms a change of all.
func TestTwoTabs(t *testing.T) {
	for _, mode := range []string{"host", "sign-in", "sign-in again"} {
		for _, path := range []string{"set", "unset", "all", "unset-all", "test"} {
			t.Run(mode+": "+path, func(t *testing.T) {
				f := newFixture(t)
				f.verifier = pair{}
				tests := 0
				f.portal.Test = func(context.Context, string, string) (string, error) { tests++; return "", nil }
				var enter func(p *person, id string)
				if mode == "host" {
					f.hosted()
					f.portal.Client = func(r *http.Request) (string, string, error) {
						c, err := r.Cookie("session")
						if err != nil {
							return "", "", nil
						}
						return "client-of-" + c.Value, "ann@example.com", nil
					}
					enter = func(p *person, id string) { p.setCookie("session", id) }
				} else {
					enter = func(p *person, id string) {
						p.get("sign-in")
						p.post("sign-in", "username", id, "password", secret, "then", "")
					}
				}
				hooktest.Apply(t, f.store, hooktest.SetAll("client-of-bert", 1), hooktest.Set("client-of-bert", "e1", 2), hooktest.Set("client-of-anna", "e1", 3))
				before := contents(t, f.store)
				p := f.serve(t)
				enter(p, "anna")
				shownClient := clientField.FindStringSubmatch(p.get("all").text)
				if shownClient == nil || shownClient[1] != "client-of-anna" {
					t.Fatalf("the form's client: %q", shownClient)
				}
				fields := []string{"client", shownClient[1], "id", "e1", "url", otherURL, "confirm", "all"}
				var got shown
				if mode == "sign-in again" { // the session ends, and somebody else signs in at the form
					p.setCookie(cookieName, "ended")
					asks := p.post(path, fields...)
					asks.expect(t, http.StatusForbidden, `name="client" value="client-of-anna"`)
					got = p.post("sign-in", append(fields, "username", "bert", "password", secret, "then", path, "again", "1")...)
				} else {
					enter(p, "bert")
					got = p.post(path, fields...)
				}
				want := []string{"for another client", "client-of-bert", `name="client" value="client-of-bert"`, `!name="client" value="client-of-anna"`, `!value="all"`, "!still here"}
				if path == "set" || path == "all" {
					want = append(want, html.EscapeString(otherURL))
				}
				got.expect(t, http.StatusConflict, want...)
				if after := contents(t, f.store); after != before || tests != 0 {
					t.Errorf("changed from %s to %s, %d tests", before, after, tests)
				}
				fields[1] = clientField.FindStringSubmatch(got.text)[1]
				p.post(path, fields...).expect(t, http.StatusOK, `class="notice good"`)
				if after := contents(t, f.store); (after == before) != (path == "test") {
					t.Errorf("the form that was shown again left %s", after)
				}
			})
		}
	}
}

// TestNotices: a page says once what the person has done there, and only to them. A link can't
// make it say so.
func TestNotices(t *testing.T) {
	f := newFixture(t)
	f.verifier = pair{}
	p := f.serve(t)
	enter := func(id string) { p.get(""); p.post("sign-in", "username", id, "password", secret, "then", "") }
	enter("anna")
	set := func() string {
		p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		defer func() { p.client.CheckRedirect = nil }()
		got := p.post("set", "client", "client-of-anna", "id", "e1", "url", hookURL)
		got.expect(t, http.StatusSeeOther)
		return got.header.Get("Set-Cookie")
	}
	const notice = "The webhook is set."
	if cookie := set(); !strings.HasPrefix(cookie, "__Host-webhooks-notice=set.") || !strings.HasSuffix(cookie, "; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("the cookie is %s", cookie)
	}
	for _, path := range []string{"", "all", "entity?id=e2", "entity"} {
		if got := p.get(path); strings.Contains(got.text, notice) {
			t.Errorf("%s shows the notice of another page", path)
		}
	}
	p.post("set", "client", "client-of-anna", "id", "e1", "url", refusedURL).expect(t, http.StatusBadRequest, "!"+notice)
	p.get("entity?id=e1&show=1").expect(t, http.StatusOK, notice)
	p.get("entity?id=e1").expect(t, http.StatusOK, "!"+notice)
	set()
	p.post("sign-out")
	enter("bert")
	p.get("entity?id=e1").expect(t, http.StatusOK, "client-of-bert", "!"+notice)
	for _, value := range []string{"set", "set.", ".", "asked", "sign-in.", "error.x", "%%%"} {
		p.setCookie(noticeCookie, value)
		p.get("entity?id=e1").expect(t, http.StatusOK, `!class="notice`)
	}
	for key := range portal.Texts() {
		_, flag, _ := strings.Cut(key, ".")
		for _, path := range []string{"?", "all?", "entity?id=e1&"} {
			p.get(path+flag+"=1&"+key+"=1").expect(t, http.StatusOK, `!class="notice`)
		}
	}
}

// TestNoticeOfAnotherClient: with the host's session, the client can change between a change
// and its page.
func TestNoticeOfAnotherClient(t *testing.T) {
	f := newFixture(t).hosted()
	client := acme
	f.portal.Client = func(*http.Request) (string, string, error) { return client, "ann", nil }
	p := f.serve(t)
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.post("set", "id", "e1", "url", hookURL).expect(t, http.StatusSeeOther)
	client = "another"
	p.get("entity?id=e1").expect(t, http.StatusOK, "!The webhook is set.")
	client = acme
	p.get("entity?id=e1").expect(t, http.StatusOK, "The webhook is set.")
}

// TestFormWithoutClient: a form that names no client changes nothing.
func TestFormWithoutClient(t *testing.T) {
	f := newFixture(t).hosted()
	p := f.serve(t)
	p.setCookie("session", "ann")
	p.post("set", "client", "", "id", "e1", "url", hookURL).expect(t, http.StatusConflict, html.EscapeString(hookURL))
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("changed: %s", got)
	}
}

// contents returns what a store in memory has of two clients.
func contents(t *testing.T, st webhookcfg.Store) string {
	t.Helper()
	var all strings.Builder
	for _, client := range []string{"client-of-anna", "client-of-bert"} {
		page, err := st.(*store.Memory).List(t.Context(), client, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(client + ": " + hooktest.Describe(page.Base) + ";")
		for _, o := range page.Overrides {
			all.WriteString(" " + o.Entity + " " + hooktest.Describe(o.Webhook))
		}
	}
	return all.String()
}
