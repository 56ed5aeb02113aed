package mounts

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/responses.txt")

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// mount is a mount in the README.
type mount struct {
	name, file string
	mount      func(t testing.TB, h *webhookcfg.Handler) any
}

var mounts = []mount{
	{"ServeMux", "servemux.go", func(_ testing.TB, h *webhookcfg.Handler) any { return ServeMux(h) }},
	{"chi", "chi.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Chi(h) }},
	{"gorilla/mux", "gorilla.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Gorilla(h) }},
	{"gin", "gin.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Gin(h) }},
	{"echo v4", "echo4.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Echo4(h) }},
	{"echo v5", "echo5.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Echo5(h) }},
	{"httprouter", "httprouter.go", func(_ testing.TB, h *webhookcfg.Handler) any { return HTTPRouter(h) }},
	{"fiber v2", "fiber2.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Fiber2(h) }},
	{"fiber v3", "fiber3.go", func(_ testing.TB, h *webhookcfg.Handler) any { return Fiber3(h) }},
	{"grpc-gateway", "gateway.go", func(t testing.TB, h *webhookcfg.Handler) any {
		mounted, err := Gateway(h)
		if err != nil {
			t.Fatal(err)
		}
		return mounted
	}},
}

// result is a request and its outcome, with redirects followed.
type result struct {
	request
	outcome string   // of the first request
	changes []string // of it and its redirects
}

// widened reports whether a request that does not mean all entities reached them.
func (a result) widened() bool {
	return !a.meansAll() && slices.ContainsFunc(a.changes, func(change string) bool { return strings.HasSuffix(change, " all") })
}

func (a result) String() string {
	line := fmt.Sprintf("%s %s: %s", a.method, a.target, a.outcome)
	if followed := strings.Join(a.changes, ", "); followed != "" && followed != a.outcome {
		line += ", followed: " + followed
	}
	if a.widened() {
		line += " (WIDENED)"
	}
	return strings.ReplaceAll(line, "/api/v1/configure/configure-webhook", "/…")
}

// drive sends the whole table. It follows redirects with the same method and body, as
// clients do on 307, and some on 301.
func drive(t testing.TB, mounted any, st *recorder) []result {
	t.Helper()
	address := serve(t, mounted)
	all := make([]result, len(requests))
	for i, q := range requests {
		got, changes, location := send(t, address, st, q, q.target)
		all[i] = result{q, got, changes}
		for range 5 {
			if location == "" {
				break
			}
			_, changes, location = send(t, address, st, q, location)
			all[i].changes = append(all[i].changes, changes...)
		}
		if location != "" {
			t.Errorf("%v: redirects without end", q)
		}
	}
	return all
}

func send(t testing.TB, address string, st *recorder, q request, target string) (got string, changes []string, location string) {
	t.Helper()
	a := raw(t, address, text(q.method, target, q.body, "Connection: close"))
	changes = st.take()
	return outcome(a, changes), changes, pathOf(t, a.Header.Get("Location"))
}

// pathOf returns the unmodified target of a redirect to the same host.
func pathOf(t testing.TB, location string) string {
	t.Helper()
	if location == "" || strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") {
		return location
	}
	u, err := url.Parse(location)
	if err != nil || u.Host != "test" {
		t.Fatalf("a redirect to %q", location)
	}
	return u.RequestURI()
}

func TestHandlerItself(t *testing.T) {
	st := newRecorder()
	for _, a := range drive(t, newHandler(t, st, options()), st) {
		if a.outcome != a.want {
			t.Errorf("%v, want %s", a, a.want)
		}
	}
}

// TestNeverWidens: no mount in the README treats as "all" a path that names one entity
// or is malformed, nor redirects it there.
func TestNeverWidens(t *testing.T) {
	for _, m := range mounts {
		st := newRecorder()
		for _, a := range drive(t, m.mount(t, newHandler(t, st, options())), st) {
			if a.widened() || a.meansAll() && a.outcome != a.want {
				t.Errorf("%s: %v", m.name, a)
			}
		}
	}
}

// TestWidens: the table catches the mounts that widen a request.
func TestWidens(t *testing.T) {
	for _, m := range alternatives {
		st := newRecorder()
		results := drive(t, m.on(t, st), st)
		if broken := slices.ContainsFunc(results, result.widened); broken != m.widens {
			t.Errorf("%s: widens a request: %t, want %t", m.name, broken, m.widens)
		}
	}
}

// TestBefore: Before around any of the net/http mounts, also around those that widen a
// request by themselves, prevents it, and the handler alone responds on its paths.
func TestBefore(t *testing.T) {
	for _, m := range mounts {
		st := newRecorder()
		h := newHandler(t, st, options())
		if inner, ok := m.mount(t, h).(http.Handler); ok {
			testBefore(t, m.name, h.Before(inner), st)
		}
	}
	for _, m := range alternatives {
		st := newRecorder()
		if h := newHandler(t, st, options()); !m.strips {
			testBefore(t, m.name, h.Before(m.mount(t, h)), st)
		}
	}
}

func testBefore(t *testing.T, name string, mounted http.Handler, st *recorder) {
	t.Helper()
	for _, a := range drive(t, mounted, st) {
		ours := strings.Contains(a.target, "configure-webhook")
		if a.widened() || ours && a.outcome != a.want {
			t.Errorf("%s inside Before: %v, want %s", name, a, a.want)
		}
	}
}

const legend = `The responses of each mount that differ from those of the handler alone, by line of
the table in requests_test.go. A redirect is followed with the same method and
body; WIDENED marks a request that then reaches all entities and must not. The path
/hooks/… is /hooks/api/v1/configure/configure-webhook.

`

// TestResponses compares the responses of each mount that differ from those of the
// handler alone with testdata/responses.txt.
func TestResponses(t *testing.T) {
	var b strings.Builder
	b.WriteString(legend)
	list := func(name string, mounted any, st *recorder) {
		fmt.Fprintf(&b, "== %s\n", name)
		for _, a := range drive(t, mounted, st) {
			if a.outcome != a.want {
				fmt.Fprintln(&b, a)
			}
		}
	}
	for _, m := range mounts {
		st := newRecorder()
		list(m.name, m.mount(t, newHandler(t, st, options())), st)
	}
	b.WriteString("\nAlternatives:\n")
	for _, m := range alternatives {
		st := newRecorder()
		list(m.name, m.on(t, st), st)
	}
	const golden = "testdata/responses.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
