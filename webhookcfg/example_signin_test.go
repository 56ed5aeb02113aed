package webhookcfg_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// caller is who sends a request, as your service knows it.
type caller struct {
	tenant string // owns the webhooks
	name   string // of the key or the person, for events and logs
}

// callers are those that your service has signed in, by the digests of their keys and sessions.
type callers struct{ keys, sessions map[[sha256.Size]byte]caller }

// find returns who sent a request, and the key or the session that proves it. A request with an
// Authorization field needs a key. It doesn't get in with a session that it also has.
func (c *callers) find(r *http.Request) (found caller, way, secret string, ok bool) {
	if fields := r.Header["Authorization"]; len(fields) > 0 {
		scheme, key, _ := strings.Cut(fields[0], " ")
		found, ok = c.keys[sha256.Sum256([]byte(key))]
		return found, "key", key, ok && len(fields) == 1 && strings.EqualFold(scheme, "Bearer")
	}
	cookies := r.CookiesNamed("session")
	if len(cookies) != 1 { // another host of your domain can add one
		return caller{}, "", "", false
	}
	found, ok = c.sessions[sha256.Sum256([]byte(cookies[0].Value))]
	return found, "session", cookies[0].Value, ok
}

type callerKey struct{}

// signIn passes on who sent a request. Put it around Handler.Before, so that it sees the requests
// for the handler, and around your own routes, which find the caller in the context too.
//
// The handler wants Basic credentials, so it gets the secret as such, and keeps it out of logs.
func (c *callers) signIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if found, way, secret, ok := c.find(r); ok {
			ctx := context.WithValue(r.Context(), callerKey{}, found)
			r = r.Clone(webhookcfg.ContextWithActor(ctx, found.name))
			r.SetBasicAuth(way, secret)
		}
		next.ServeHTTP(bearerWriter{w}, r)
	})
}

// Verify implements [webhookcfg.CredentialVerifier]. It only believes signIn, because anybody can
// send an id and a secret. So don't put a cache around it.
func (c *callers) Verify(ctx context.Context, _, _ string) (webhookcfg.Client, error) {
	found, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: found.tenant}, nil
}

// bearerWriter asks for a key. If the response asked for Basic credentials, a browser would show
// its own prompt to people whose session has ended.
type bearerWriter struct{ http.ResponseWriter }

func (w bearerWriter) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="Acme modules"`)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w bearerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter } // for http.ResponseController

// newSite returns a service in which callers sign in with its own keys and sessions.
func newSite(webhooks webhookcfg.Store, c *callers, o webhookcfg.Options) (http.Handler, error) {
	o.Reads = true
	o.AllScope = webhookcfg.AllScopeExact // refuse a path with an empty identifier
	h, err := webhookcfg.NewHandler(webhooks, c, &o)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux() // with your own routes
	// A browser sends the cookie of a session whichever site a request comes from.
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(&webhookcfg.Error{Status: http.StatusForbidden, Code: "cross_origin", Description: "The request comes from another site"})
	return origins.Handler(c.signIn(h.Before(mux))), nil
}

// Your clients already sign in to your service, with a Bearer key or with a session in a browser.
// They set their webhooks with that, by the same requests and rules. Only the document of
// [webhookcfg.Handler.OpenAPI] still names Basic.
func ExampleCredentialVerifier() {
	site, err := newSite(store.NewMemory(), &callers{
		keys:     map[[sha256.Size]byte]caller{sha256.Sum256([]byte("acme-key-5f2b")): {"acme", "deployment"}},
		sessions: map[[sha256.Size]byte]caller{sha256.Sum256([]byte("acme-session-81c0")): {"acme", "ada"}},
	}, webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff, // there is nothing to reach in an example
		OnEvent: func(_ context.Context, e webhookcfg.Event) {
			fmt.Printf("%s %s of %q by %q with a %s: %d\n", e.Operation, e.Scope, e.Client, e.Actor, e.Credential, e.Status)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	const path = "/api/v1/configure/configure-webhook"
	r := httptest.NewRequest("POST", path, strings.NewReader(`{"endpoint_id":"e1","webhook_url":"https://hooks.example.com/in"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer acme-key-5f2b")
	site.ServeHTTP(httptest.NewRecorder(), r)

	r = httptest.NewRequest("DELETE", path, nil)
	r.AddCookie(&http.Cookie{Name: "session", Value: "acme-session-81c0"})
	site.ServeHTTP(httptest.NewRecorder(), r)

	r.Header.Set("Sec-Fetch-Site", "cross-site") // the same from a page of somebody else
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output:
	// set entity e1 of "acme" by "deployment" with a key: 200
	// unset all of "acme" by "ada" with a session: 200
	// 403 {"error":"cross_origin","error_description":"The request comes from another site"}
}
