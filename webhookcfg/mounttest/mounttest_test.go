package mounttest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

const (
	client  = "mounttest"
	secret  = "a-long-random-secret"
	hookURL = "https://hooks.example.com/in/t0ken"

	resource = "/hooks/api/v1/configure/configure-webhook"
)

// hooks are the options of a handler that reads and is served under /hooks.
var hooks = webhookcfg.Options{BasePath: "/hooks", Reads: true, ProbeMode: webhookcfg.ProbeOff}

func newHandler(t testing.TB, st webhookcfg.Store, o webhookcfg.Options) *webhookcfg.Handler {
	t.Helper()
	return hooktest.NewHandler(t, st, hooktest.NewVerifier(t, client, secret), &o)
}

// serve serves a mount over HTTP/1, or over TLS with HTTP/2 as well.
func serve(t testing.TB, h http.Handler, overTLS bool) mounttest.Target {
	t.Helper()
	return serveOn(t, nil, h, overTLS)
}

// serveOn serves a mount on the network of a test, or on a socket if that's nil.
func serveOn(t testing.TB, network *hooktest.Network, h http.Handler, overTLS bool) mounttest.Target {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	if network != nil {
		_ = server.Listener.Close()
		server.Listener = network
	}
	server.Config.ErrorLog = log.New(&testWriter{t: t}, "", 0)
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, requests{}, new(atomic.Int64))
	}
	target := mounttest.Target{ClientID: client, Secret: secret, WebhookURL: hookURL, Timeout: time.Minute}
	if server.EnableHTTP2 = overTLS; overTLS {
		server.StartTLS()
		target.TLSConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		if !*mounttest.Full {
			// Resuming a session of TLS 1.2 takes no key exchange, and a check opens
			// hundreds of connections.
			target.TLSConfig.MaxVersion = tls.VersionTLS12
		}
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	target.BaseURL = server.URL + "/hooks"
	return target
}

// testWriter logs the errors of a server, which malformed requests cause, to the test.
type testWriter struct{ t testing.TB }

func (w *testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

// resolve reads the effect in the store, which is faster than over HTTP.
func resolve(st webhookcfg.Store) func(context.Context, string) (string, error) {
	return func(ctx context.Context, entity string) (string, error) {
		hook, err := st.Resolve(ctx, client, entity)
		return hook.URL.Reveal(), err
	}
}

// check completes a check, which is a sample without -full.
func check(t testing.TB, target mounttest.Target) mounttest.Report {
	t.Helper()
	report, err := mounttest.CheckSome(t.Context(), target, 10)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// run is [mounttest.Run], with a sample of the requests without -full.
func run(t testing.TB, target mounttest.Target) {
	t.Helper()
	if *mounttest.Full {
		mounttest.Run(t, target)
	} else if report := check(t, target); len(report.Failures) > 0 {
		t.Error(report)
	}
}

func TestHandler(t *testing.T) {
	h := newHandler(t, store.NewMemory(), hooks)
	mux := http.NewServeMux()
	h.Register(mux)
	few, more := 600, 1000
	if !*mounttest.Full {
		few, more = 100, 170
	}
	for _, tt := range []struct {
		mount   http.Handler
		overTLS bool
	}{{h, false}, {h, true}, {h.Before(mux), false}} {
		report := check(t, serve(t, tt.mount, tt.overTLS))
		if len(report.Failures) > 0 || report.HTTP2 != tt.overTLS || report.Requests < few || tt.overTLS && report.Requests < more {
			t.Errorf("over TLS %t: HTTP/2 %t, %v", tt.overTLS, report.HTTP2, report)
		}
	}
	run(t, serve(t, h, false))
}

// TestEntities: the check can use other identifiers, for a host with a catalogue. Afterwards
// the client has no webhook.
func TestEntities(t *testing.T) {
	st := store.NewMemory()
	o := hooks
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) {
		return entity == "e1" || entity == "e2", nil
	}
	target := serve(t, newHandler(t, st, o), false)
	target.Entity, target.Witness = "e1", "e2"
	run(t, target)
	for _, entity := range []string{"e1", "e2"} {
		if hook, err := st.Resolve(t.Context(), client, entity); err != nil || !hook.URL.IsZero() {
			t.Errorf("%s: %v, %v", entity, hook, err)
		}
	}
}

// TestResolve: if the handler has no reads, the host can read the effect.
func TestResolve(t *testing.T) {
	st := store.NewMemory()
	o := hooks
	o.Reads = false
	target := serve(t, newHandler(t, st, o), false)
	if _, err := mounttest.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "Options.Reads") {
		t.Errorf("got %v, want the advice to switch reads on", err)
	}
	target.Resolve = resolve(st)
	run(t, target)
}

// TestVacuous: a check that couldn't fail is an error.
func TestVacuous(t *testing.T) {
	h := newHandler(t, store.NewMemory(), hooks)
	constant := func(webhookURL string) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return webhookURL, nil }
	}
	tests := []struct {
		name   string
		mount  http.Handler
		change func(*mounttest.Target)
		want   string
	}{
		{"not the mount", http.NotFoundHandler(), func(*mounttest.Target) {}, "check BaseURL"},
		{"no effect", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*mounttest.Target) {}, "not JSON"},
		{"wrong base", h, func(t *mounttest.Target) { t.BaseURL += "/x" }, "check BaseURL"},
		{"redirected base", http.RedirectHandler("https://elsewhere.example.com/", http.StatusMovedPermanently), func(*mounttest.Target) {}, "needs no redirect"},
		{"wrong secret", h, func(t *mounttest.Target) { t.Secret = "wrong" }, "check ClientID and Secret"},
		{"refused URL", h, func(t *mounttest.Target) { t.WebhookURL = "http://hooks.example.com/" }, "check WebhookURL"},
		{"always a webhook", h, func(t *mounttest.Target) { t.Resolve = constant(hookURL) }, "want false"},
		{"never a webhook", h, func(t *mounttest.Target) { t.Resolve = constant("") }, "want true"},
		{"another webhook", h, func(t *mounttest.Target) { t.Resolve = constant("https://elsewhere.example.com/") }, "nothing else uses"},
		{"error", h, func(t *mounttest.Target) {
			t.Resolve = func(context.Context, string) (string, error) { return "", errors.New("broken on purpose") }
		}, "broken on purpose"},
		{"no base", h, func(t *mounttest.Target) { t.BaseURL = "" }, "BaseURL"},
		{"userinfo", h, func(t *mounttest.Target) { t.BaseURL = "http://u:passw0rd@127.0.0.1/" }, "userinfo"},
		{"query", h, func(t *mounttest.Target) { t.BaseURL += "?x=y" }, "query"},
		{"empty query", h, func(t *mounttest.Target) { t.BaseURL += "?" }, "query"},
		{"fragment", h, func(t *mounttest.Target) { t.BaseURL += "#x" }, "fragment"},
		{"another scheme", h, func(t *mounttest.Target) { t.BaseURL = "ftp://127.0.0.1/" }, "http or https"},
		{"no host", h, func(t *mounttest.Target) { t.BaseURL = "http:///hooks" }, "http or https"},
		{"invalid URL", h, func(t *mounttest.Target) { t.BaseURL = "http://127.0.0.1:x/" }, "invalid BaseURL"},
		{"no secret", h, func(t *mounttest.Target) { t.Secret = "" }, "set ClientID"},
		{"one entity", h, func(t *mounttest.Target) { t.Entity, t.Witness = "e", "e" }, "two different"},
		{"entity with a slash", h, func(t *mounttest.Target) { t.Entity = "a/b" }, "two different"},
		{"negative timeout", h, func(t *mounttest.Target) { t.Timeout = -1 }, "negative"},
	}
	for _, tt := range tests {
		target := serve(t, tt.mount, false)
		tt.change(&target)
		report, err := mounttest.Check(t.Context(), target)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "passw0rd") || report.Requests > 0 {
			t.Errorf("%s: error %v after %d requests, want %q", tt.name, err, report.Requests, tt.want)
		}
	}
}

// TestRefusalWithLocation: clients follow the Location of a redirect only.
func TestRefusalWithLocation(t *testing.T) {
	inner := newHandler(t, store.NewMemory(), hooks)
	target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.RequestURI, "..") {
			w.Header().Set("Location", resource)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		inner.ServeHTTP(w, r)
	}), false)
	report, err := mounttest.CheckClasses(t.Context(), target, []string{"dots"})
	if err != nil || len(report.Failures) > 0 {
		t.Errorf("got %v, %v", report, err)
	}
}

// TestUnknownEntity: one body names the entity that the host doesn't know.
func TestUnknownEntity(t *testing.T) {
	inner := newHandler(t, store.NewMemory(), hooks)
	var named atomic.Int64
	target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && strings.Contains(string(body), `-unknown"`) {
			named.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}), false)
	report, err := mounttest.CheckClasses(t.Context(), target, []string{"JSON"})
	if err != nil || len(report.Failures) > 0 || named.Load() != 1 {
		t.Errorf("named %d times: %v, %v", named.Load(), report, err)
	}
}

// TestIncomplete: if the check couldn't make one attempt, or see the effect of one correct
// request, it isn't complete, even if all the others pass.
func TestIncomplete(t *testing.T) {
	st := store.NewMemory()
	inner := newHandler(t, st, hooks)
	target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.RequestURI, "/x/../..") {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}), false)
	report, err := mounttest.CheckClasses(t.Context(), target, []string{"dots"})
	if err == nil || !strings.Contains(err.Error(), "429") {
		t.Errorf("limited: %v, %v", report, err)
	}

	target = serve(t, inner, false)
	resolved := 0
	target.Resolve = func(ctx context.Context, entity string) (string, error) {
		if entity == "mounttest-entity" {
			resolved++
		}
		if resolved == 5 { // the first after the check of the target
			resolved++
			return "", errors.New("broken")
		}
		return resolve(st)(ctx, entity)
	}
	report, err = mounttest.CheckClasses(t.Context(), target, []string{"dots"})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("unseen: %v, %v", report, err)
	}
}

// TestFailedPreparation: if the check can't prepare a correct request, the attempts after it
// would mean nothing. The third POST is the first after the check of the target.
func TestFailedPreparation(t *testing.T) {
	inner := newHandler(t, store.NewMemory(), hooks)
	var posts atomic.Int64
	target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && posts.Add(1) == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	}), false)
	report, err := mounttest.CheckClasses(t.Context(), target, []string{"dots"})
	if err == nil || !strings.Contains(err.Error(), "503") || report.Requests > 0 {
		t.Errorf("got %v, %v", report, err)
	}
}

// recorded wraps a testing.TB to see whether a test fails.
type recorded struct {
	testing.TB
	text string
}

func (r *recorded) Helper()           {}
func (r *recorded) Error(args ...any) { r.text += fmt.Sprint(args...) }

// TestRun: a failure and an error fail the test.
func TestRun(t *testing.T) {
	st := store.NewMemory()
	h := newHandler(t, st, hooks)
	mux := http.NewServeMux()
	h.Register(mux)
	for _, tt := range []struct {
		mount http.Handler
		want  string
	}{
		{h, ""}, {mux, "redirected"}, {http.NotFoundHandler(), "BaseURL"},
	} {
		r := &recorded{TB: t}
		target := serve(t, tt.mount, false)
		if !*mounttest.Full {
			target.Resolve = resolve(st)
		}
		mounttest.Run(r, target)
		if tt.want == "" && r.text != "" || !strings.Contains(r.text, tt.want) {
			t.Errorf("got %q, want %q", r.text, tt.want)
		}
	}
}

// TestSecrets: neither report nor error contains a secret, even if the mount returns them.
func TestSecrets(t *testing.T) {
	inner := newHandler(t, store.NewMemory(), hooks)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pass, _ := r.BasicAuth()
		to := "/" + pass + "/" + r.Header.Get("Authorization") + "/" + hookURL
		if r.Method == "POST" && strings.Contains(r.RequestURI, "//") {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		clean(inner).ServeHTTP(w, r)
	})
	target := serve(t, echo, false)
	target.Received = func() []string { return []string{secret, hookURL} }
	report, err := mounttest.CheckSome(t.Context(), target, 5)
	if err != nil {
		t.Fatal(err)
	}
	target.Resolve = func(context.Context, string) (string, error) { return "", errors.New(secret + " " + hookURL) }
	_, err = mounttest.Check(t.Context(), target)
	if len(report.Failures) == 0 || err == nil {
		t.Fatalf("no failures, or error %v", err)
	}
	text := fmt.Sprintf("%v %#v %v", report, report.Failures, err)
	for _, hidden := range []string{secret, "t0ken", base64.StdEncoding.EncodeToString([]byte(client + ":" + secret))} {
		if strings.Contains(text, hidden) {
			t.Errorf("the text holds %q", hidden)
		}
	}
	for _, shown := range []string{"https://hooks.example.com", "[secret]", "DELETE /hooks/api/v1/configure/configure-webhook/mounttest-entity/.. HTTP/1.1"} {
		if !strings.Contains(text, shown) {
			t.Errorf("the text does not hold %q", shown)
		}
	}
}

// TestNothingStaysOpen: a check leaves no connection and no goroutine.
func TestNothingStaysOpen(t *testing.T) {
	h := newHandler(t, store.NewMemory(), hooks)
	for _, overTLS := range []bool{false, true} {
		target := serve(t, h, overTLS)
		before := hostile.Goroutines()
		check(t, target)
		if err := before.Await(); err != nil {
			t.Errorf("over TLS %t: %v", overTLS, err)
		}
	}
}

// TestHostile: a mount can do anything with malformed requests that reaches nothing, and
// nothing stays open.
func TestHostile(t *testing.T) {
	before := hostile.Goroutines()
	t.Run("mounts", testHostile)
	if err := before.Await(); err != nil {
		t.Error(err)
	}
}

func testHostile(t *testing.T) {
	for _, tt := range []struct {
		name, response string // after which it is silent
	}{
		{"silent", ""},
		{"silent over TLS", ""},
		{"half a header", "HTTP/1.1 200 OK\r\n"},
		{"endless 103", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10000)},
		{"101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"},
		{"redirect without end", "HTTP/1.1 307 x\r\nLocation: /\r\nContent-Length: 1000000\r\n\r\n"},
		{"no HTTP", strings.Repeat("x", 1<<20)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkDropping(t, strings.HasSuffix(tt.name, "over TLS"), func(inner http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.Contains(r.RequestURI, "/./") {
						inner.ServeHTTP(w, r)
						return
					}
					if r.ProtoMajor == 2 {
						drop(w, r)
						return
					}
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					_, _ = conn.Write([]byte(tt.response))
					_, _ = conn.Read(make([]byte, 1)) // until the check closes it
				})
			})
		})
	}
}

// checkDropping checks a mount that drops some requests, or treats them badly, and passes. The clock
// is fake, so that a correct request takes no time.
func checkDropping(t *testing.T, overTLS bool, around func(http.Handler) http.Handler) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st, network := store.NewMemory(), hooktest.NewNetwork()
		target := serveOn(t, network, around(newHandler(t, st, hooks)), overTLS)
		target.Resolve = resolve(st)
		report, err := mounttest.CheckClassesOver(t.Context(), network.Dial, target, []string{"dots", "absolute form"})
		if err != nil || len(report.Failures) > 0 {
			t.Errorf("got %v, %v", report, err)
		}
	})
}

// TestIdleConnections: a server can close an idle connection just as the check sends a
// correct request over it.
func TestIdleConnections(t *testing.T) {
	type connection struct{ reused bool }
	inner := newHandler(t, store.NewMemory(), hooks)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := r.Context().Value(connection{}).(*connection)
		if conn.reused {
			panic(http.ErrAbortHandler) // closes it
		}
		conn.reused = true
		inner.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, new(connection))
	}
	server.Start()
	defer server.Close()
	report, err := mounttest.CheckClasses(t.Context(), mounttest.Target{
		BaseURL: server.URL + "/hooks", ClientID: client, Secret: secret, WebhookURL: hookURL, Timeout: time.Minute,
	}, []string{"dots"})
	if err != nil || len(report.Failures) > 0 {
		t.Errorf("got %v, %v", report, err)
	}
}

// TestCancel: the check ends with its context, and restores the client.
func TestCancel(t *testing.T) {
	st := store.NewMemory()
	inner := newHandler(t, st, hooks)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.RequestURI, "..") {
			cancel()
			<-r.Context().Done() // the connection was closed
			return
		}
		inner.ServeHTTP(w, r)
	}), false)
	report, err := mounttest.Check(ctx, target)
	if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) || len(report.Failures) > 0 {
		t.Errorf("got %v, %v", report, err)
	}
	if hook, err := st.Resolve(t.Context(), client, "mounttest-witness"); err != nil || !hook.URL.IsZero() {
		t.Errorf("witness after the check: %v, %v", hook, err)
	}
}
