package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

const (
	client = "acme"
	secret = "a-long-random-secret"
	at     = "https://hooks.example.com"
	token  = "/in/t0ken?key=s3cret"
)

// fixture is a service with a portal at /portal.
type fixture struct {
	t        *testing.T
	store    webhookcfg.Store
	handler  webhookcfg.Options
	portal   portal.Options
	verifier *verifier
	server   *httptest.Server
	isBroken atomic.Bool // break connections instead of responding
}

// verifier is a verifier whose result you can change.
type verifier struct {
	webhookcfg.CredentialVerifier
	mu  sync.Mutex
	err error
}

func (v *verifier) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	v.mu.Lock()
	err := v.err
	v.mu.Unlock()
	if err != nil {
		return webhookcfg.Client{}, err
	}
	return v.CredentialVerifier.Verify(ctx, id, secret)
}

func (v *verifier) set(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		t: t, store: store.NewMemory(),
		verifier: &verifier{CredentialVerifier: hooktest.NewVerifier(t, client, secret)},
		handler:  webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff, Reads: true},
		portal:   portal.Options{SignIn: &portal.SignIn{}},
	}
}

// serve serves the API and the portal, and returns the portal's URL.
func (f *fixture) serve() string {
	f.t.Helper()
	h := hooktest.NewHandler(f.t, f.store, f.verifier, &f.handler)
	pages, err := portal.New(h, &f.portal)
	if err != nil {
		f.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/portal", pages)
	mux.HandleFunc("/favicon.ico", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "ann", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, "/portal", http.StatusSeeOther)
	})
	mux.Handle("/", h)
	f.server = hooktest.Serve(f.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.isBroken.Load() {
			panic(http.ErrAbortHandler)
		}
		h.Before(mux).ServeHTTP(w, r)
	}))
	return f.server.URL + "/portal"
}

func (f *fixture) apply(changes ...webhookcfg.Change) {
	f.t.Helper()
	hooktest.Apply(f.t, f.store, changes...)
}

// set returns a change that set a URL some days ago.
func set(scope webhookcfg.Scope, url string) webhookcfg.Change {
	c := webhookcfg.SetChange(client, scope, egress.NewURL(url))
	c.Time = time.Date(2026, 11, 20, 16, 1, 0, 0, time.UTC)
	return c
}

// resolved returns the webhook in effect.
func (f *fixture) resolved(entity string) string {
	f.t.Helper()
	hook, err := f.store.Resolve(context.Background(), client, entity)
	if err != nil {
		f.t.Fatal(err)
	}
	return fmt.Sprint(hook.Source, " ", hook.URL.Reveal())
}

// expect fails unless the expected webhook is in effect.
func (f *fixture) expect(entity, want string) {
	f.t.Helper()
	if got := f.resolved(entity); got != want {
		f.t.Fatalf("%s: got %s, want %s", entity, got, want)
	}
}

// populated returns a fixture that has a webhook in each state.
func populated(t *testing.T) *fixture {
	f := newFixture(t)
	f.apply(set(webhookcfg.All(), at+token))
	for _, id := range []string{"billing-eu", "orders-1", "orders-2", "sandbox"} {
		f.apply(set(webhookcfg.Entity(id), "https://"+id+".example.com:8443"+token))
	}
	off := webhookcfg.UnsetChange(client, webhookcfg.Entity("archive"))
	off.Time = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	f.apply(off)
	f.handler.DeliveryStatus = func(_ context.Context, _, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		last := time.Date(2026, 11, 22, 16, 1, 0, 0, time.UTC)
		switch entity {
		case "orders-1":
			return webhookcfg.DeliveryStatus{State: "failing", Reason: "status", LastSuccess: last.Add(-time.Hour), LastFailure: last}, nil
		case "orders-2":
			return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone", LastFailure: last}, nil
		case "sandbox":
			return webhookcfg.DeliveryStatus{}, nil
		}
		return webhookcfg.DeliveryStatus{State: "ok", LastSuccess: last}, nil
	}
	f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "status", nil }
	f.portal.Try = func(context.Context, string, string, egress.URL) (string, error) { return "", nil }
	f.portal.Notifications, f.portal.NotificationBodies = queue{}, true
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) {
		return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", nil
	}
	return f
}

// deliver connects a sender to the pages, and returns a function that sends a message to an
// entity.
func (f *fixture) deliver() (send func(entity string) deliver.Reason) {
	f.t.Helper()
	keys, err := deliver.DerivedKeys(make([]byte, 32))
	if err != nil {
		f.t.Fatal(err)
	}
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	sender, err := deliver.New(f.store, keys, &deliver.Options{Policy: egress.Development(), Health: health})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(sender.CloseIdleConnections)
	message := deliver.Message{ID: "msg_1", Body: []byte(`{}`)}
	f.handler.DeliveryStatus = health.Status
	f.portal.Test = sender.Tester(message)
	f.portal.SigningKey = deliver.SigningKey(keys)
	return func(entity string) deliver.Reason {
		return sender.Send(f.t.Context(), client, entity, message).Reason
	}
}

// hosted lets the host's session sign people in, and shows the pages in the host's layout.
func (f *fixture) hosted() *fixture {
	f.portal.SignIn, f.portal.SignInURL = nil, "/login"
	f.portal.Client = func(r *http.Request) (string, string, error) {
		c, err := r.Cookie("session")
		if err != nil {
			return "", "", nil
		}
		return client, c.Value, nil
	}
	f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
		w.WriteHeader(page.Status)
		fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Host</title><link rel="stylesheet" href="?page=style"></head>
<body class="whp-page"><header class="whp">The host's own header</header>%s</body></html>`, page.Content)
	}
	return f
}

// otherOrigin serves a page on another port.
func otherOrigin(t *testing.T, page string) string {
	t.Helper()
	return hooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	})).URL
}
