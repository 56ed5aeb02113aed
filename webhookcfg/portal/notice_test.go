package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/portal"
)

// TestNotices: a page says once what the person has done there, and only to them. A link can't
// make it say so.
func TestNotices(t *testing.T) {
	f := newFixture(t)
	f.verifier = pair{}
	p := f.serve(t)
	enter := func(id string) { p.get(""); p.post("sign-in", "username", id, "password", secret, "then", "overview") }
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
			got := p.get(path + flag + "=1&" + key + "=1")
			if strings.Contains(got.text, `class="notice good"`) {
				t.Errorf("%s: a notice in %s", got.at, got.text)
			}
		}
	}
}

// TestNoticeOfOneNotification: the page of another notification doesn't say that it was sent again.
func TestNoticeOfOneNotification(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	p.signIn()
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.post("send-again", "message", "msg_01").expect(t, http.StatusSeeOther)
	p.get("notification?message=msg_02").expect(t, http.StatusOK, "msg_02", `!class="notice`)
	p.get("notification?message=msg_01").expect(t, http.StatusOK, "msg_01", `class="notice good"`)
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
