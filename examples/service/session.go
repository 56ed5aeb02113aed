package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// sessions signs people in. Here it's one person, from the environment. Replace it with your
// own sessions.
type sessions struct {
	person, client string
	passwords      webhookcfg.CredentialVerifier
	key            []byte
}

const (
	sessionCookie = "__Host-session"
	sessionTime   = 8 * time.Hour
)

// open returns the cookie of a session. It has the person, the session's end, and a proof of
// both.
func (s *sessions) open(now time.Time) *http.Cookie {
	text := s.person + "|" + strconv.FormatInt(now.Add(sessionTime).Unix(), 10)
	return &http.Cookie{Name: sessionCookie, Value: text + "|" + s.proof(text), Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

func (s *sessions) proof(text string) string {
	mac := hmac.New(sha256.New, s.key)
	_, _ = io.WriteString(mac, "session|"+text) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// find is a Client of package portal. It returns the client that a request acts for, and the
// person who acts.
func (s *sessions) find(r *http.Request) (client, person string, err error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", "", nil
	}
	end := strings.LastIndexByte(cookie.Value, '|')
	if end < 0 || !hmac.Equal([]byte(cookie.Value[end+1:]), []byte(s.proof(cookie.Value[:end]))) {
		return "", "", nil
	}
	person, until, _ := strings.Cut(cookie.Value[:end], "|")
	if seconds, err := strconv.ParseInt(until, 10, 64); err != nil || person != s.person || time.Now().Unix() >= seconds {
		return "", "", nil
	}
	return s.client, person, nil
}

// ServeHTTP signs a person in, or out.
func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	problem := ""
	switch {
	case r.Method != http.MethodPost:
	case r.PostFormValue("out") != "":
		http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", Secure: true, MaxAge: -1})
	default:
		_, err := s.passwords.Verify(r.Context(), r.PostFormValue("person"), r.PostFormValue("password"))
		if err == nil {
			http.SetCookie(w, s.open(time.Now()))
			http.Redirect(w, r, "/portal/", http.StatusSeeOther)
			return
		}
		status := http.StatusForbidden
		problem = `<p role="alert">The name or the password is wrong.</p>`
		if limit, ok := errors.AsType[*auth.LimitError](err); ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(limit.RetryAfter().Seconds())+1))
			status = http.StatusTooManyRequests
			problem = `<p role="alert">Too many attempts. Wait a moment, then try again.</p>`
		}
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, `<!DOCTYPE html><html lang="en"><title>Sign in</title><h1>Sign in</h1>`+problem+`<form method="post">
<p><label>Person <input name="person" autocomplete="username"></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password"></label></p>
<button>Sign in</button></form>`)
}

// pages adds the pages for people to the service's own paths, if there is a person.
func (s *service) pages(mux *http.ServeMux, h *webhookcfg.Handler) error {
	if s.cfg.person == "" {
		return nil
	}
	parts := strings.SplitN(s.cfg.person, ":", 3)
	if len(parts) < 3 || slices.Contains(parts, "") {
		return errors.New("environment variable PERSON: want a client, a name and a password, for instance acme:ann:a-password-of-ann")
	}
	client, person := parts[0], parts[1]
	passwords, err := auth.NewStatic(auth.Credential{ID: person, Secrets: []auth.Secret{auth.NewSecret(parts[2])}})
	if err != nil {
		return fmt.Errorf("environment variable PERSON: %w", err)
	}
	throttled, err := auth.NewThrottle(passwords, nil)
	if err != nil {
		return err
	}
	people := &sessions{person: person, client: client, passwords: throttled, key: s.cfg.masters[0]}
	pages, err := portal.New(h, &portal.Options{
		Client:     people.find,
		SignInURL:  "/sign-in",
		Test:       s.sender.Tester(testMessage),
		SigningKey: deliver.SigningKey(s.keys),
		Layout:     layout,
	})
	if err != nil {
		return err
	}
	mux.Handle("/portal/", http.StripPrefix("/portal", pages))
	mux.Handle("/sign-in", http.NewCrossOriginProtection().Handler(people))
	return nil
}

// layout puts a page of the portal into this service's own layout.
func layout(w http.ResponseWriter, _ *http.Request, page portal.Page) {
	w.WriteHeader(page.Status)
	_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="%s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Modules</title><link rel="stylesheet" href="style.css"></head>
<body class="whp-page"><header class="whp">Modules, our example of a service
<form method="post" action="/sign-in"><button name="out" value="1">Sign out</button></form></header>%s</body></html>`, page.Lang, page.Content)
}
