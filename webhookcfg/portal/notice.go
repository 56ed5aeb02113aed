package portal

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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

// newNotice returns a notice that a client's form was sent, for the page at an address.
func newNotice(form, client, address string) *http.Cookie {
	return newCookie(noticeCookie, form+"."+noticeTag(client, address), noticeSeconds)
}

// noticeOf returns the name of the form that has led to a client's page at an address, or "".
func noticeOf(r *http.Request, client, address string) string {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	form, tag, _ := strings.Cut(cookie.Value, ".")
	if tag != noticeTag(client, address) {
		return ""
	}
	return form
}

// noticeTag names a page of a client.
func noticeTag(client, address string) string {
	sum := sha256.Sum256([]byte(client + "\n" + address))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// newCookie returns a cookie with a value. Browsers send it only to this host name, and
// scripts can't read it. Links on other sites send it, but forms on other sites don't.
func newCookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge}
}
