package mounts

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
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

// TestMountCheck: every mount in the README passes the check of a deployed mount.
func TestMountCheck(t *testing.T) {
	for _, m := range mounts {
		t.Run(m.name, func(t *testing.T) {
			mounttest.Run(t, mounttest.Target{
				BaseURL:    "http://" + serve(t, m.mount(t, newHandler(t, newRecorder(), options()))) + base,
				ClientID:   "acme",
				Secret:     secret,
				WebhookURL: hookURL,
			})
		})
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
		isHandler := strings.Contains(a.target, "configure-webhook")
		if a.widened() || isHandler && a.outcome != a.want {
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

// allPaths are the only spellings that mean all entities.
var allPaths = []string{configure, configure + "/", variant, variant + "/", strings.TrimSuffix(alias, "/"), alias}

// pieces are inserted into paths at random.
var pieces = []string{
	"/", "//", "/.", "/..", "/./", "/../", "/e1", "/e1/..", "/a%2fb/..", "/%2e", "/%2e%2e", "/%2f", "%2f", "%2F..",
	"/hooks", "/HOOKS", "/api", "/configure", "/configure-webhook", "\\", ";", "%5c", "%00", "%252f", "?", "#", "/a%2f%2fb/../..",
}

// spoiled returns a path that is none of allPaths, but may be cleaned to one.
func spoiled(r *rand.Rand) string {
	path := allPaths[r.IntN(len(allPaths))]
	for range 1 + r.IntN(3) {
		var starts []int // of segments, and the end
		for i, c := range path + "/" {
			if c == '/' {
				starts = append(starts, i)
			}
		}
		at := starts[r.IntN(len(starts))]
		path = path[:at] + pieces[r.IntN(len(pieces))] + path[at:]
	}
	if r.IntN(4) == 0 {
		at := 1 + r.IntN(len(path)-1)
		path = path[:at] + strings.ToUpper(path[at:at+1]) + path[at+1:]
	}
	return path
}

// reaches reports whether a DELETE of the target, with redirects followed, reaches all
// entities through the mount.
func reaches(t testing.TB, mounted http.Handler, st *recorder, target string) bool {
	t.Helper()
	for range 5 {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text("DELETE", target, ""))))
		if err != nil {
			return false // since the server responds with 400
		}
		w := httptest.NewRecorder()
		mounted.ServeHTTP(w, r)
		if slices.Contains(st.take(), "unset all") {
			return true
		}
		if target = w.Header().Get("Location"); target == "" || strings.HasPrefix(target, "//") {
			return false
		}
	}
	return false
}

// TestRandomPaths: no random path widens a request.
func TestRandomPaths(t *testing.T) {
	const rounds = 600
	run := func(name string, breaks bool, mounted http.Handler, st *recorder) {
		r := rand.New(rand.NewPCG(1, 2))
		broken := 0
		for range rounds {
			path := spoiled(r)
			if slices.Contains(allPaths, path) || !reaches(t, mounted, st, path) {
				continue
			}
			if broken++; !breaks && broken < 5 {
				t.Errorf("%s: DELETE %s reaches all", name, path)
			}
		}
		if breaks && broken == 0 {
			t.Errorf("%s: none of %d paths widened a request", name, rounds)
		}
	}
	for _, m := range mounts {
		st := newRecorder()
		if mounted, ok := m.mount(t, newHandler(t, st, options())).(http.Handler); ok {
			run(m.name, false, mounted, st)
		}
	}
	for _, m := range alternatives {
		st := newRecorder()
		run(m.name, m.widens, m.on(t, st), st)
		if !m.strips {
			h := newHandler(t, st, options())
			run(m.name+", inside Before", false, h.Before(m.mount(t, h)), st)
		}
	}
}
