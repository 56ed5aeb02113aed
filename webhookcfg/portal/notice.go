package portal

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// noticeCookie tells the page to which a change leads what the person has just done. A link
// can't do that. The name's prefix keeps the cookie from being set by other hosts and over
// http, so it needs no seal, and works on every replica.
const noticeCookie = "__Host-webhooks-notice"

// noticeSeconds are enough for a redirect.
const noticeSeconds = 60

// asked is the value of the cookie while the portal asks for an id and a secret. If it isn't
// there when they arrive, the browser keeps no cookies, and we say so instead of asking again.
const asked = "asked"

// leaveNotice leaves a notice for the page at an address.
func (v *visit) leaveNotice(notice, address string) {
	http.SetCookie(v.w, newCookie(noticeCookie, notice+"."+v.noticeTag(address), noticeSeconds))
}

// takeNotice shows the notice for this page.
func (v *visit) takeNotice() {
	if form, ok := v.notice(); ok {
		v.Done, v.IsRepaired = form.done, form.repairs
		http.SetCookie(v.w, newCookie(noticeCookie, "", -1))
	}
}

// notice returns the form that has led to this page, if there's a notice of it.
func (v *visit) notice() (form, bool) {
	cookie, err := v.r.Cookie(noticeCookie)
	if err != nil || v.r.Method != http.MethodGet {
		return form{}, false
	}
	address := entityAddress(v.page, v.query.Get("id"))
	if message := v.query["message"]; message != nil {
		address = pageAddress(v.page, url.Values{"message": message})
	}
	notice, tag, _ := strings.Cut(cookie.Value, ".")
	f := v.routes[notice].form
	return f, f.done != "" && tag == v.noticeTag(address)
}

// noticeTag names a page of a client.
func (v *visit) noticeTag(address string) string {
	sum := sha256.Sum256([]byte(v.Client + "\n" + address))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// newCookie returns a cookie with a value. Browsers send it only to this host name, and
// scripts can't read it. Links on other sites send it, but forms on other sites don't.
func newCookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge}
}
