package mounttest_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// isPlain reports whether a request has one of the targets that clients use on purpose.
func isPlain(r *http.Request) bool {
	rest, found := strings.CutPrefix(strings.TrimPrefix(r.RequestURI, "http://"+r.Host), resource)
	id := strings.TrimPrefix(rest, "/")
	return found && (rest == "" || id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz-") == "")
}

func isOdd(r *http.Request) bool    { return !isPlain(r) }
func isHTTP10(r *http.Request) bool { return r.ProtoMajor == 1 && r.ProtoMinor == 0 }
func isAbsolute(r *http.Request) bool {
	return strings.HasPrefix(r.RequestURI, "http")
}

func respond(handle func(http.ResponseWriter, *http.Request)) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler { return http.HandlerFunc(handle) }
}

func redirect(code int, location string) func(http.Handler) http.Handler {
	return respond(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	})
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// drop holds a request until the client gives up. net/http notices that once it has the body.
func drop(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// original returns options for a proxy that cleans paths and passes on the target it
// received.
func original(scope webhookcfg.AllScope) webhookcfg.Options {
	o := hooks
	o.AllScope, o.OriginalTarget = scope, webhookcfg.TargetFromHeader("X-Original-URI")
	return o
}

// safe are mounts that never widen a request, with the forms that they don't serve.
var safe = []struct {
	name       string
	options    webhookcfg.Options
	around     func(http.Handler) http.Handler
	notChecked []string // besides HTTP/2, which none of them serves
}{
	{"closes the connection", hooks, onlyIf(isOdd, respond(abort)), nil},
	{"refuses with 404", hooks, onlyIf(isOdd, respond(http.NotFound)), nil},
	{"redirects to a sign-in page", hooks, onlyIf(isOdd, redirect(http.StatusFound, "https://login.example.com/?next="+resource)), nil},
	{"redirects to the home page", hooks, onlyIf(isOdd, redirect(http.StatusPermanentRedirect, "/")), nil},
	{"redirects next to the resource", hooks, onlyIf(isOdd, redirect(http.StatusTemporaryRedirect, resource+"-help")), nil},
	{"redirects to an entity", hooks, onlyIf(isOdd, redirect(http.StatusPermanentRedirect, resource+"/mounttest-entity?"+resource)), nil},
	{"redirects nowhere", hooks, onlyIf(isOdd, respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMultipleChoices) })), nil},
	{"cleans, and passes the target on", original(webhookcfg.AllScopeExact), func(next http.Handler) http.Handler {
		cleaned := clean(next)
		return onlyIf(func(r *http.Request) bool {
			return isDelete(r) && (r.ContentLength != 0 || r.Header.Get("Expect") != "")
		}, refuse, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-Original-URI", r.RequestURI)
				cleaned.ServeHTTP(w, r)
			})
		})(next)
	}, []string{"absolute form"}},
	{"cleans for a handler that refuses all", func() webhookcfg.Options { o := hooks; o.AllScope = webhookcfg.AllScopeRefused; return o }(), clean, []string{"absolute form"}},
	{"wants a User-Agent and Accept", hooks, onlyIf(lacks("User-Agent"), refuse, onlyIf(lacks("Accept"), refuse)), nil},
	{"refuses HTTP/1.0", hooks, onlyIf(isHTTP10, respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUpgradeRequired) })), []string{"HTTP/1.0"}},
	{"refuses the absolute form", hooks, onlyIf(isAbsolute, refuse), []string{"absolute form"}},
	{"closes every connection", hooks, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			next.ServeHTTP(w, r)
		})
	}, []string{"kept alive"}},
	{"refuses sets of HTTP/1.0", hooks, onlyIf(func(r *http.Request) bool { return isHTTP10(r) && r.Method == "POST" }, refuse), []string{"HTTP/1.0"}},
}

// TestSafe: every safe mount passes. If it refuses a whole form, that isn't checked.
func TestSafe(t *testing.T) {
	for _, tt := range safe {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			target := serve(t, tt.around(newHandler(t, st, tt.options)), false)
			target.Resolve = resolve(st)
			report := check(t, target)
			if len(report.Failures) > 0 {
				t.Error(report)
			}
			var forms []string
			for _, n := range report.NotChecked {
				if n.Form != "HTTP/2" {
					forms = append(forms, n.Form)
				}
				if !strings.Contains(report.String(), n.String()) || n.Method == "" || n.Reason == "" {
					t.Errorf("incomplete: %+v", n)
				}
			}
			if !slices.Equal(forms, tt.notChecked) {
				t.Errorf("not checked: %q, want %q", forms, tt.notChecked)
			}
		})
	}
}

// TestDropped: a mount can drop requests to refuse them, as long as correct ones pass. If it
// drops a whole form, that isn't checked.
func TestDropped(t *testing.T) {
	checkDropping(t, false, onlyIf(func(r *http.Request) bool {
		return isAbsolute(r) || isOdd(r) && strings.Contains(r.RequestURI, "..")
	}, respond(drop)))
}

// TestNoResponse: if correct requests stop passing after some requests were dropped, these
// are failures, and the rest of the form isn't checked.
func TestNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.NewMemory()
		var blocked atomic.Bool
		network := hooktest.NewNetwork()
		target := serveOn(t, network, onlyIf(isHTTP10, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if isOdd(r) {
					blocked.Store(true)
				}
				if blocked.Load() {
					drop(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		})(newHandler(t, st, hooks)), false)
		target.Resolve, target.Timeout = resolve(st), time.Second
		report, err := mounttest.CheckClassesOver(t.Context(), network.Dial, target, []string{"HTTP/1.0"})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Failures) == 0 {
			t.Fatal("no failures")
		}
		for _, f := range report.Failures {
			if f.Outcome != mounttest.NoResponse || f.Form != "HTTP/1.0" || f.Advice == "" {
				t.Errorf("got %v, want no response", f)
			}
		}
		if n := report.NotChecked; len(n) != 1 || n[0].Form != "HTTP/1.0" || n[0].Reason != "no response in time" {
			t.Errorf("not checked: %v", n)
		}
	})
}

// TestLateEffect: a request without a response can have its effect later. For the last
// requests, the check waits at its end.
func TestLateEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := store.NewMemory()
		unsetAll := func() {
			if err := st.Apply(t.Context(), webhookcfg.UnsetChange(client, webhookcfg.All())); err != nil {
				t.Error(err)
			}
		}
		isLate := func(uri string) func(*http.Request) bool {
			return func(r *http.Request) bool { return isDelete(r) && isHTTP10(r) && r.RequestURI == uri }
		}
		report := checkLate(t, st, isLate(resource+"?"), func(w http.ResponseWriter, r *http.Request) {
			drop(w, r)
			unsetAll()
		}, resolve(st))
		if len(report.Failures) == 0 || report.Failures[0].Outcome != mounttest.Widened {
			t.Errorf("got %v", report)
		}

		// After the last attempt of the class come one correct request and then the wait.
		var last atomic.Bool
		var passed time.Time // when the effect of the correct request was read
		report = checkLate(t, st, isLate(resource+"/"+strings.Repeat("a", 300)), func(w http.ResponseWriter, r *http.Request) {
			last.Store(true)
			drop(w, r)
		}, func(ctx context.Context, entity string) (string, error) {
			if entity == "mounttest-witness" && !passed.IsZero() && time.Since(passed) > lateTimeout/2 {
				unsetAll()
			}
			if entity == "mounttest-entity" && last.Load() {
				passed = time.Now()
			}
			return resolve(st)(ctx, entity)
		})
		if len(report.Failures) != 1 || report.Failures[0].Class != "late" || report.Failures[0].Outcome != mounttest.Widened {
			t.Errorf("got %v", report)
		}
	})
}

const lateTimeout = 500 * time.Millisecond

// checkLate checks a mount that answers some requests of HTTP/1.0 late.
func checkLate(t *testing.T, st webhookcfg.Store, isLate func(*http.Request) bool, late http.HandlerFunc, resolve func(context.Context, string) (string, error)) mounttest.Report {
	t.Helper()
	network := hooktest.NewNetwork()
	target := serveOn(t, network, onlyIf(isLate, respond(late))(newHandler(t, st, hooks)), false)
	target.Timeout, target.Resolve = lateTimeout, resolve
	report, err := mounttest.CheckClassesOver(t.Context(), network.Dial, target, []string{"HTTP/1.0"})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestVacuousForm: if nothing sent byte for byte passes as HTTP/1.1, from the start, later on
// or for a while, the check is an error, even if net/http's client passes.
func TestVacuousForm(t *testing.T) {
	for _, banned := range []struct{ from, to int64 }{{0, math.MaxInt64}, {100, math.MaxInt64}, {100, 200}} {
		for _, overTLS := range []bool{false, true} {
			t.Run(fmt.Sprintf("banned %v, TLS %t", banned, overTLS), func(t *testing.T) {
				t.Parallel()
				st := store.NewMemory()
				var odd atomic.Int64
				var raw sync.Map // the addresses of connections that aren't net/http's
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, address)
					if err == nil {
						raw.Store(conn.LocalAddr().String(), true)
					}
					return conn, err
				}
				isBanned := func(r *http.Request) bool {
					if isOdd(r) {
						odd.Add(1)
					}
					_, isRaw := raw.Load(r.RemoteAddr)
					return isRaw && odd.Load() >= banned.from && odd.Load() < banned.to
				}
				target := serve(t, onlyIf(isBanned, refuse)(newHandler(t, st, hooks)), overTLS)
				target.Resolve = resolve(st)
				report, err := mounttest.CheckSomeDialling(t.Context(), dial, target, 3)
				if err == nil || !strings.Contains(err.Error(), "byte for byte") || len(report.NotChecked) != 1 {
					t.Errorf("got %v, %v", report, err)
				}
			})
		}
	}
}

// TestUnreachedForm: if no more connections can be opened, the check is an error, even if
// net/http's client still has its own.
func TestUnreachedForm(t *testing.T) {
	h := newHandler(t, store.NewMemory(), hooks)
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = server.Listener.Close()
		h.ServeHTTP(w, r)
	})
	server.Start()
	t.Cleanup(server.Close)
	report, err := mounttest.CheckClasses(t.Context(), mounttest.Target{
		BaseURL: server.URL + "/hooks", ClientID: client, Secret: secret, WebhookURL: hookURL, Timeout: time.Minute,
	}, []string{"dots"})
	if err == nil || !strings.Contains(err.Error(), "byte for byte") || report.Requests > 0 || len(report.NotChecked) != 1 {
		t.Errorf("got %v, %v", report, err)
	}
}
