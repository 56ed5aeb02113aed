package portal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

const (
	sessionToken = "s3ssion-t0ken-of-ann"
	refusedURL   = "http://10.0.0.1/t0ken"
)

// hostFunctions are the functions of a host that the portal calls. Each takes the function
// that fails, and the page that calls it.
var hostFunctions = []struct {
	name  string
	path  string
	set   func(f *fixture, fail func(ctx context.Context) error)
	panic int    // the status after a panic
	error int    // the status after an error; 0 if the function returns none
	text  string // on the page
}{
	{"Options.Client", "set", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Client = func(r *http.Request) (string, string, error) { return "", "", fail(r.Context()) }
	}, 500, 503, "Send it again"},
	{"Options.Test", "test", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Test = func(ctx context.Context, _, _ string) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Send a test"},
	{"Options.Try", "try", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Try = func(ctx context.Context, _, _ string, _ egress.URL) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Try it"},
	{"Options.SigningKey", "key", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.SigningKey = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Go to the webhooks"},
	{"DeliveryStatus", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.handler.DeliveryStatus = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
			return webhookcfg.DeliveryStatus{}, fail(ctx)
		}
	}, 200, 200, "Not known right now"},
	{"DeliveryStatus", "", func(f *fixture, fail func(ctx context.Context) error) {
		f.handler.DeliveryStatus = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
			return webhookcfg.DeliveryStatus{}, fail(ctx)
		}
	}, 200, 200, "Not known right now"},
	{"Options.Text", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Text = func(r *http.Request, _ string) string { _ = fail(r.Context()); return "" }
	}, 200, 0, "Turn off"},
	{"Options.Layout", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Layout = func(w http.ResponseWriter, r *http.Request, page portal.Page) {
			_ = fail(r.Context())
			w.WriteHeader(page.Status)
			_, _ = io.WriteString(w, string(page.Content))
		}
	}, 500, 0, "Something went wrong on our side"},
	{"Options.Layout", "set", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
			w.Header().Set("Content-Length", "10")
			w.Header().Set("Content-Encoding", "gzip")
			_ = fail(context.TODO()) // there is none to hang on
			panic(page.Content)      // which has all that was typed
		}
	}, 500, 0, "Something went wrong on our side"},
}

// TestHostFails: if a function of the host fails or panics, the person reads a sentence on a
// whole page, nothing that they typed is lost, and nothing changes. The log has the reason,
// and shows neither a URL's path nor the session.
func TestHostFails(t *testing.T) {
	quoted := &url.Error{Op: "Post", URL: hookURL, Err: errors.New("dial tcp: refused")} // as http.Client returns it
	session := fmt.Errorf("no session %s", sessionToken)
	for _, function := range hostFunctions {
		for name, fail := range map[string]func(context.Context) error{
			"error quotes the URL":     func(context.Context) error { return quoted },
			"error quotes the session": func(context.Context) error { return session },
			"error panics":             func(context.Context) error { return (*url.Error)(nil) },
			"panic quotes the URL":     func(context.Context) error { panic("no row for " + hookURL) },
			"panic with an error":      func(context.Context) error { panic(quoted) },
			"panic quotes the session": func(context.Context) error { panic(session) },
			"panic of the runtime":     func(context.Context) error { var none []error; return none[len(none)] },
		} {
			t.Run(function.name+" of "+function.path+": "+name, func(t *testing.T) {
				f := newFixture(t).hosted()
				records := f.record()
				f.portal.Client = func(*http.Request) (string, string, error) { return acme, "ann", nil }
				function.set(f, fail)
				hooktest.Apply(t, f.store, hooktest.At(1, webhookcfg.SetChange(acme, webhookcfg.Entity("e1"), egress.NewURL(hookURL))))
				p := f.serveLogged(t, records)
				p.setCookie("session", sessionToken)
				var got shown
				status := function.error
				if strings.HasPrefix(name, "panic") || name == "error panics" {
					status = function.panic
				}
				if function.error == 0 && !strings.HasPrefix(name, "panic") || function.name == "DeliveryStatus" && strings.HasSuffix(name, "session") {
					return // the function can't fail in this way
				}
				if function.path == "try" {
					got = p.post("try", "id", "e1", "url", hookURL)
				} else if function.path == "set" || function.path == "test" {
					got = p.post(function.path, fieldsOf(function.path, "id", "e1", "url", refusedURL)...)
				} else {
					got = p.get(function.path)
				}
				if function.path == "set" {
					got.expect(t, status, refusedURL)
				}
				got.expect(t, status, "</html>", function.text)
				if n := strings.Count(records.String(), "level=ERROR"); n != 1 || !strings.Contains(records.String(), function.name) {
					t.Errorf("%d records of the failure: %s", n, records)
				}
				for _, secret := range []string{"t0ken", "s3cret", sessionToken} {
					records.expectWithout(t, name, secret)
				}
				if name == "panic of the runtime" && (!strings.Contains(records.String(), "index out of range") || !strings.Contains(records.String(), "host_test.go")) && function.path != "set" {
					t.Errorf("the log doesn't say where: %s", records)
				}
				if got := f.resolved(t, "e1"); got != "override "+hookURL {
					t.Errorf("changed: %s", got)
				}
			})
		}
	}
}

// TestAuthorizationInError: a host's session can come in the field Authorization, and the error
// can quote only the token or the password in it.
func TestAuthorizationInError(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("ann:" + sessionToken))
	for field, quoted := range map[string]string{"Bearer " + sessionToken: sessionToken, "Basic " + basic: sessionToken + " or " + basic} {
		f := newFixture(t).hosted()
		records := f.record()
		f.portal.Client = func(*http.Request) (string, string, error) { return "", "", errors.New("no session " + quoted) }
		p := f.serve(t)
		r := p.request("GET", "")
		r.Header.Set("Authorization", field)
		p.do(r).expect(t, http.StatusServiceUnavailable)
		if !strings.Contains(records.String(), "no session [secret]") {
			t.Errorf("%s: logged %s", field, records)
		}
		records.expectWithout(t, field, sessionToken)
		records.expectWithout(t, field, basic)
	}
}

// serveLogged is like serve, but the records get the server's own log, too.
func (f *fixture) serveLogged(t *testing.T, records *records) *person {
	t.Helper()
	server := httptest.NewUnstartedServer(http.StripPrefix("/my/portal", f.new(t)))
	server.Config.ErrorLog = log.New(records, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	client.Jar, _ = cookiejar.New(nil)
	return &person{t, client, server.URL + "/my/portal/"}
}

// TestHostHangs: a function of the host that waits until its context ends delays a page for
// Timeout at most, even if the page has many rows, and the log says which one it was.
func TestHostHangs(t *testing.T) {
	for _, function := range hostFunctions {
		t.Run(function.name+" of "+function.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t).hosted()
				records := f.record()
				f.portal.Client = func(*http.Request) (string, string, error) { return acme, "ann", nil }
				hangs := 0
				function.set(f, func(ctx context.Context) error {
					if ctx == context.TODO() {
						return nil // the function gets none
					}
					if ctx.Done() == nil {
						t.Error("the context never ends")
						return nil
					}
					hangs++
					<-ctx.Done()
					return ctx.Err()
				})
				for i := range 30 {
					hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprint("e", i), i+1))
				}
				method := "GET"
				if function.path == "set" || function.path == "test" {
					method = "POST"
				}
				form := url.Values{"client": {acme}, "id": {"e1"}}
				if function.path == "set" {
					form.Set("url", refusedURL)
				}
				r := httptest.NewRequest(method, "/"+function.path, strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				start := time.Now()
				f.new(t).ServeHTTP(w, r)
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
				if w.Body.Len() == 0 {
					t.Error("no page")
				}
				if function.error != 0 && hangs > 0 && (strings.Count(records.String(), "level=ERROR") > 2 || !strings.Contains(records.String(), function.name)) {
					t.Errorf("%d hangs, logged %s", hangs, records)
				}
			})
		})
	}
}

// TestLayoutFailsLate: if the layout fails after a part of the page was sent, the connection
// breaks, so nobody takes the part for the whole page.
func TestLayoutFailsLate(t *testing.T) {
	f := newFixture(t).hosted()
	records := f.record()
	f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
		_, _ = io.WriteString(w, "<html>")
		_ = http.NewResponseController(w).Flush()
		panic(page)
	}
	p := f.serveLogged(t, records)
	resp, err := p.client.Get(p.base)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("got %s", body)
	}
	if !strings.Contains(records.String(), "portal: Options.Layout panicked") || strings.Contains(records.String(), "http: panic serving") {
		t.Errorf("logged %s", records)
	}
}

// TestHostAborts: a function of the host can break the connection.
func TestHostAborts(t *testing.T) {
	f := newFixture(t).hosted()
	records := f.record()
	f.portal.Client = func(*http.Request) (string, string, error) {
		panic(fmt.Errorf("on purpose: %w", http.ErrAbortHandler))
	}
	p := f.serveLogged(t, records)
	if _, err := p.client.Get(p.base); err == nil {
		t.Error("no error")
	}
	if records.String() != "" {
		t.Errorf("logged %s", records)
	}
}

// TestHostReturnsNonsense: an empty key, and a reason or a state that no text explains, are
// failures of the host.
func TestHostReturnsNonsense(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", nil }
	f.portal.Test = func(context.Context, string, string) (string, error) { return "sleepy", nil }
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
	p := f.serve(t)
	p.signIn()
	p.get("key?id=e1").expect(t, http.StatusServiceUnavailable, "do this right now")
	p.post("test", "client", acme, "id", "e1").expect(t, http.StatusServiceUnavailable, "do this right now", "!sleepy")
	for _, want := range []string{"there is no key", `unknown reason \"sleepy\"`} {
		if !strings.Contains(records.String(), want) {
			t.Errorf("want %s in %s", want, records)
		}
	}
	p.post("test", "client", acme).expect(t, http.StatusConflict, "No webhook is set, so no test was sent")
}

// TestLoggerPanics: a page doesn't depend on the logger.
func TestLoggerPanics(t *testing.T) {
	f := newFixture(t).hosted()
	f.handler.Logger = textLogger(nil) // writes to a nil Writer
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
	p := f.serve(t)
	p.setCookie("session", "ann")
	p.get("key").expect(t, http.StatusServiceUnavailable, "do this right now")
}

// brokenBody is a body whose reader panics, as one of a host's middleware can.
type brokenBody struct{ io.Reader }

func (brokenBody) Close() error             { return nil }
func (brokenBody) Read([]byte) (int, error) { panic("read " + hookURL) }

// TestPagePanics: a panic anywhere else gets a whole page, too, and the log doesn't show what
// it quotes.
func TestPagePanics(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	r := httptest.NewRequest("POST", "/set", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.ContentLength = brokenBody{}, 100
	w := httptest.NewRecorder()
	f.new(t).ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Something went wrong on our side") || !strings.Contains(w.Body.String(), "</html>") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(records.String(), "host_test.go") {
		t.Errorf("logged %s", records)
	}
	records.expectWithout(t, "the panic", "t0ken")
}
