package portal_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// records collects everything that a portal and its handler show of requests: the log, the
// events and, if a test adds them, the server's own log.
type records struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// last returns the last record.
func (r *records) last() string {
	all := strings.Split(strings.TrimSpace(r.String()), "\n")
	return all[len(all)-1]
}

// record collects the log and the events of a fixture.
func (f *fixture) record() *records {
	r := new(records)
	f.handler.Logger = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) { fmt.Fprintf(r, "event %+v\n", e) }
	return r
}

// expectWithout fails if the records show a text, plain or encoded.
func (r *records) expectWithout(t *testing.T, name, text string) {
	t.Helper()
	shown := r.String()
	unpadded := base64.RawStdEncoding.EncodeToString([]byte(text))
	var percent strings.Builder
	for _, b := range []byte(text) {
		percent.WriteString(fmt.Sprintf("%%%02X", b))
	}
	for _, spelling := range []string{text, url.QueryEscape(text), url.PathEscape(text), strings.ToLower(percent.String()), percent.String(), hex.EncodeToString([]byte(text)), unpadded, base64.RawURLEncoding.EncodeToString([]byte(text))} {
		if strings.Contains(shown, spelling) {
			t.Errorf("%s: the records show %s:\n%s", name, spelling, shown)
		}
	}
}

// TestSecretInSignIn: whatever mistake a person makes when they sign in, the records don't
// show the secret. The only exception is a secret alone in the field for the id, unless the
// handler omits ids that nobody has verified.
func TestSecretInSignIn(t *testing.T) {
	for _, tt := range []struct {
		name           string
		omit           bool
		user, password string
	}{
		{"as the id", true, secret, "x"},
		{"pair as the id", false, acme + ":" + secret, "x"},
		{"pair as the id, and the secret", false, acme + ":" + secret, secret},
		{"pair in both", false, acme + ":" + secret, acme + ":" + secret},
		{"as the id, without a secret", false, secret, ""},
		{"in both", false, secret, secret},
		{"as the secret of nobody", false, "nobody", secret},
		{"alone", false, "", secret},
	} {
		f := newFixture(t)
		records := f.record()
		f.handler.OmitPresentedID = tt.omit
		p := f.serve(t)
		if got := p.post("sign-in", "username", tt.user, "password", tt.password, "then", "overview"); !got.isSignIn() {
			t.Errorf("%s: signed in", tt.name)
		}
		if !strings.Contains(records.String(), "sign_in") {
			t.Errorf("%s: no record of the refusal", tt.name)
		}
		records.expectWithout(t, tt.name, secret)
	}
}

// TestSecretInEveryField: somebody types or pastes a secret into any field of any page, signed
// in or not. The records don't show it, and no page does, unless the person typed it there.
// Only the portal's own sign-in knows the secret, and refuses it as an identifier. With the
// host's session, an identifier is an identifier.
func TestSecretInEveryField(t *testing.T) {
	fields := append(slices.Clone(allFields), secret)
	paths := append(slices.Sorted(maps.Keys(routes)), "nothing", secret)
	mistakes := []string{
		secret, acme + ":" + secret, address + "/" + secret + "?key=" + secret, "https://" + acme + ":" + secret + "@hooks.example.com/",
		"Basic " + base64.StdEncoding.EncodeToString([]byte(acme+":"+secret)),
	}
	for _, mode := range []string{"sign-in", "host"} {
		for _, isSignedIn := range []bool{true, false} {
			t.Run(fmt.Sprint(mode, isSignedIn), func(t *testing.T) {
				f := newFixture(t)
				if mode == "host" {
					f.hosted()
				}
				records := f.record()
				f.handler.OmitPresentedID = true
				f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
				f.portal.Try = func(_ context.Context, _, _ string, target egress.URL) (string, error) {
					return "", errors.New(target.Reveal())
				}
				f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
				f.portal.Notifications = &queue{err: errBroken}
				f.handler.DeliveryStatus = func(_ context.Context, _, _ string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
					return webhookcfg.DeliveryStatus{}, errors.New(hook.URL.Reveal())
				}
				p := f.serve(t)
				p.client.Transport = direct{f.new(t)}
				p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				enter := func() {
					switch {
					case isSignedIn && mode == "host":
						p.setCookie("session", "ann")
					case isSignedIn:
						p.signIn()
					}
				}
				enter()
				for i, value := range mistakes {
					for _, field := range fields {
						if mode == "host" && (field == "id" || field == "find") {
							continue
						}
						for _, path := range paths {
							if r := routes[path]; i > 0 && !slices.Contains(r.Form, field) && !slices.Contains(r.Query, field) {
								continue // it was refused before
							}
							p.post(path, append(fieldsOf(path, "id", "e1", "url", address, "confirm", "all", "message", "msg_01", "since", "hour", "username", acme, "then", "overview"), field, value)...)
							if path == "sign-in" || path == "sign-out" {
								enter() // since that can end the session
							}
							query := url.Values{field: {value}}.Encode()
							isTyped := field == "find" || field == "id" || path == secret || mode == "sign-in" && !isSignedIn && slices.Contains(routes[path].Query, field) // which the sign-in keeps
							if page := p.get(path + "?" + query); strings.Contains(page.text, secret) && !isTyped {
								t.Errorf("the page of %s?%s shows the secret: %s", path, query, page.text)
							}
						}
					}
				}
				records.expectWithout(t, "all", secret)
				page, err := f.store.(webhookcfg.Lister).List(t.Context(), acme, "", 1000)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range page.Overrides {
					if strings.Contains(o.Entity, secret) {
						t.Errorf("stored %s", o.Entity)
					}
				}
			})
		}
	}
}

// direct calls a handler without a connection. It's faster, if a test makes many requests.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1234"
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
