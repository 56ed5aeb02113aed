package mounttest_test

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// signingIn is an edge that lets requests of strangers in, with the credentials of the client.
func signingIn(isTrusted func(*http.Request) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isTrusted(r) {
				r.SetBasicAuth(client, secret)
			}
			next.ServeHTTP(w, r)
		})
	}
}

// isRight reports whether a request has the client's credentials.
func isRight(r *http.Request) bool {
	id, password, _ := r.BasicAuth()
	return id == client && password == secret
}

// remembering returns a condition: a request with the same key has signed in.
func remembering(key func(*http.Request) string) func(*http.Request) bool {
	var known sync.Map
	return func(r *http.Request) bool {
		if isRight(r) {
			known.Store(key(r), true)
		}
		_, found := known.Load(key(r))
		return found
	}
}

// cachingReads is an edge that keeps responses to GET, whoever asks.
func cachingReads(next http.Handler) http.Handler {
	var responses sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			responses.Clear()
			next.ServeHTTP(w, r)
			return
		}
		if kept, found := responses.Load(r.RequestURI); found {
			_, _ = w.Write(kept.([]byte))
			return
		}
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		if recorded.Code == http.StatusOK {
			responses.Store(r.RequestURI, bytes.Clone(recorded.Body.Bytes()))
		}
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(recorded.Body.Bytes())
	})
}

func hostOf(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// TestCredentials: edges that let strangers in fail, in the forms in which they do that.
func TestCredentials(t *testing.T) {
	hasNone := lacks("Authorization")
	for _, tt := range []struct {
		name   string
		around func(http.Handler) http.Handler
		forms  []string
	}{
		{"adds credentials", signingIn(hasNone), []string{"HTTP/1.1", "HTTP/1.0"}},
		{"replaces credentials", signingIn(func(r *http.Request) bool { return !hasNone(r) }), []string{"HTTP/1.1"}},
		{"replaces a wrong secret", signingIn(func(r *http.Request) bool {
			id, _, _ := r.BasicAuth()
			return id == client
		}), []string{"HTTP/1.1"}},
		{"compares secrets without their case", signingIn(func(r *http.Request) bool {
			id, password, _ := r.BasicAuth()
			return id == client && strings.EqualFold(password, secret)
		}), []string{"HTTP/1.1"}},
		{"compares the start of secrets", signingIn(func(r *http.Request) bool {
			id, password, _ := r.BasicAuth()
			return id == client && password != "" && strings.HasPrefix(secret, password)
		}), []string{"HTTP/1.1"}},
		{"adds credentials for an unknown id", signingIn(func(r *http.Request) bool {
			id, _, _ := r.BasicAuth()
			return strings.HasSuffix(id, "-unknown")
		}), []string{"HTTP/1.1"}},
		{"adds credentials to other schemes", signingIn(func(r *http.Request) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
		}), []string{"HTTP/1.1"}},
		{"adds credentials to sets", signingIn(func(r *http.Request) bool { return r.Method == http.MethodPost && hasNone(r) }), []string{"HTTP/1.1"}},
		{"remembers connections", signingIn(remembering(func(r *http.Request) string { return r.RemoteAddr })), []string{"kept alive"}},
		{"remembers connections of requests without credentials", func(next http.Handler) http.Handler {
			known := remembering(func(r *http.Request) string { return r.RemoteAddr })
			return signingIn(func(r *http.Request) bool { return known(r) && hasNone(r) })(next)
		}, []string{"kept alive"}},
		{"remembers addresses", signingIn(remembering(hostOf)), []string{"HTTP/1.1", "kept alive"}},
		{"believes a field with the user", signingIn(func(r *http.Request) bool { return r.Header.Get("X-Forwarded-User") == client }), []string{"HTTP/1.1"}},
		{"believes local addresses", signingIn(func(r *http.Request) bool { return r.Header.Get("X-Forwarded-For") == "127.0.0.1" }), []string{"HTTP/1.1"}},
		{"remembers responses", cachingReads, []string{"HTTP/1.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			target := serve(t, tt.around(newHandler(t, st, hooks)), false)
			target.Resolve = resolve(st)
			report, err := mounttest.CheckClasses(t.Context(), target, []string{"credentials"})
			if err != nil {
				t.Fatal(err)
			}
			var forms []string
			for _, f := range report.Failures {
				forms = append(forms, f.Form)
				if f.Outcome != mounttest.SignedIn || f.Class != "credentials" || f.Advice == "" || strings.Contains(f.Request+f.Advice, secret) {
					t.Errorf("got %v", f)
				}
			}
			for _, form := range tt.forms {
				if !slices.Contains(forms, form) {
					t.Errorf("no failure in the form %s, only in %v", form, slices.Compact(forms))
				}
			}
		})
	}
}

// TestCredentialsOverHTTP2: one client of net/http sends all these requests over a connection.
func TestCredentialsOverHTTP2(t *testing.T) {
	st := store.NewMemory()
	known := remembering(func(r *http.Request) string { return r.RemoteAddr })
	isHTTP2 := func(r *http.Request) bool { return r.ProtoMajor == 2 }
	target := serve(t, onlyIf(isHTTP2, signingIn(known))(newHandler(t, st, hooks)), true)
	target.Resolve = resolve(st)
	report, err := mounttest.CheckClasses(t.Context(), target, []string{"credentials"})
	if err != nil || len(report.Failures) < 3 {
		t.Fatalf("got %v, %v", report, err)
	}
	for _, f := range report.Failures {
		if f.Form != "HTTP/2" || f.Outcome != mounttest.SignedIn {
			t.Errorf("got %v", f)
		}
	}
}

// TestStrangersAreRefused: mounts that refuse strangers in their own way pass, and so does one
// with the default limits of a throttle, two times in a row.
func TestStrangersAreRefused(t *testing.T) {
	isStranger := func(r *http.Request) bool { return !isRight(r) }
	throttled := func(next http.Handler) http.Handler {
		withSource, err := auth.WithSource(nil)
		if err != nil {
			t.Fatal(err)
		}
		return withSource(next)
	}
	throttle, err := auth.NewThrottle(hooktest.NewVerifier(t, client, secret), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		verifier webhookcfg.CredentialVerifier
		around   func(http.Handler) http.Handler
	}{
		"redirects to a sign-in page": {around: onlyIf(isStranger, redirect(http.StatusFound, "https://login.example.com/"))},
		"shows a sign-in page":        {around: onlyIf(isStranger, respond(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<form>")) }))},
		"refuses with 403":            {around: onlyIf(isStranger, refuse)},
		"refuses with 429":            {around: onlyIf(isStranger, respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))},
		"closes the connection":       {around: onlyIf(isStranger, respond(abort))},
		"throttles":                   {verifier: throttle, around: throttled},
	} {
		t.Run(name, func(t *testing.T) {
			st := store.NewMemory()
			if tt.verifier == nil {
				tt.verifier = hooktest.NewVerifier(t, client, secret)
			}
			target := serve(t, tt.around(hooktest.NewHandler(t, st, tt.verifier, &hooks)), false)
			target.Resolve = resolve(st)
			for range 2 {
				report, err := mounttest.CheckClasses(t.Context(), target, []string{"credentials"})
				if err != nil || len(report.Failures) > 0 || len(report.NotChecked) > 1 {
					t.Errorf("got %v, %v", report, err)
				}
			}
		})
	}
}

// TestAdvice: a mount that only cleans paths isn't told to look for a field with the original
// target. One that honours such a field is.
func TestAdvice(t *testing.T) {
	for name, tt := range map[string]struct {
		around    func(http.Handler) http.Handler
		field     bool
		path      bool
		mentioned int
	}{
		"cleans":          {clean, false, true, 1},
		"honours a field": {rewriting(func(r *http.Request, target string) string { return orTarget(r.Header.Get("X-Original-URI"), target) }), true, false, 1},
		"does one of each": {rewriting(func(r *http.Request, target string) string {
			return orTarget(r.Header.Get("X-Original-URI"), cleanTarget(target))
		}), true, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			target := serve(t, tt.around(newHandler(t, st, hooks)), false)
			target.Resolve = resolve(st)
			report, err := mounttest.CheckClasses(t.Context(), target, []string{"dots", "slashes", "query", "fragment", "original target"})
			if err != nil {
				t.Fatal(err)
			}
			text := report.String()
			if strings.Contains(text, "the field with the original request target") != tt.field || strings.Contains(text, "Pass the path on untouched") != tt.path || strings.Count(text, "To do:") != tt.mentioned {
				t.Errorf("advice: %s", text[strings.Index(text, "To do:"):])
			}
		})
	}
}

func orTarget(field, target string) string {
	if field != "" {
		return field
	}
	return target
}

func cleanTarget(target string) string {
	if strings.Contains(target, "..") {
		return resource
	}
	return target
}
