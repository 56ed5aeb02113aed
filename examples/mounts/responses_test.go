package mounts

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
	"github.com/gin-gonic/gin"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// mount is a mount in the README.
type mount struct {
	name     string
	module   string // of the router; the standard library has none
	function string // that mounts the handler
	mount    func(t testing.TB, h *webhookcfg.Handler) http.Handler
}

var mounts = []mount{
	{"ServeMux", "", "ServeMux", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return ServeMux(h) }},
	{"chi", "github.com/go-chi/chi/v5", "Chi", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return Chi(h) }},
	{"gorilla/mux", "github.com/gorilla/mux", "Gorilla", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return Gorilla(h) }},
	{"gin", "github.com/gin-gonic/gin", "Gin", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return Gin(h) }},
	{"echo v4", "github.com/labstack/echo/v4", "Echo4", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return Echo4(h) }},
	{"echo v5", "github.com/labstack/echo/v5", "Echo5", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return Echo5(h) }},
	{"httprouter", "github.com/julienschmidt/httprouter", "HTTPRouter", func(_ testing.TB, h *webhookcfg.Handler) http.Handler { return HTTPRouter(h) }},
	{"grpc-gateway", "github.com/grpc-ecosystem/grpc-gateway/v2", "Gateway", func(t testing.TB, h *webhookcfg.Handler) http.Handler {
		mounted, err := Gateway(h)
		if err != nil {
			t.Fatal(err)
		}
		return mounted
	}},
}

// result is a request and its outcome.
type result struct {
	request
	outcome string
}

func (a result) String() string {
	line := fmt.Sprintf("%s %s: %s", a.method, a.target, a.outcome)
	return strings.ReplaceAll(line, "/api/v1/configure/configure-webhook", "/…")
}

// drive sends the whole table.
func drive(t testing.TB, mounted http.Handler, st *recorder) []result {
	t.Helper()
	address := serve(t, mounted)
	all := make([]result, len(requests))
	for i, q := range requests {
		a := raw(t, address, text(q.method, q.target, q.body, "Connection: close"))
		all[i] = result{q, outcome(a, st.take())}
	}
	return all
}

// check checks a mount with package mounttest.
func check(t testing.TB, mounted http.Handler) mounttest.Report {
	t.Helper()
	report, err := mounttest.Check(t.Context(), mounttest.Target{
		BaseURL: "http://" + serve(t, mounted) + base, ClientID: "acme", Secret: secret, WebhookURL: hookURL, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestMounts: no mount in the README lets a path that names one entity, or is malformed,
// reach all entities, or redirects it there.
func TestMounts(t *testing.T) {
	for _, m := range mounts {
		if report := check(t, m.mount(t, newHandler(t, newRecorder(), options()))); len(report.Failures) > 0 {
			t.Errorf("%s: %v", m.name, report)
		}
	}
}

// TestBefore: Before makes every mount safe, even those that fail by
// themselves, and only the handler responds on its paths.
func TestBefore(t *testing.T) {
	for _, m := range mounts {
		st := newRecorder()
		h := newHandler(t, st, options())
		testBefore(t, m.name, h.Before(m.mount(t, h)), st)
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
	if report := check(t, mounted); len(report.Failures) > 0 {
		t.Errorf("%s inside Before: %v", name, report)
	}
	st.take()
	for _, a := range drive(t, mounted, st) {
		isHandler := strings.Contains(a.target, "configure-webhook")
		if isHandler && a.outcome != a.want {
			t.Errorf("%s inside Before: %v, want %s", name, a, a.want)
		}
	}
}

// allPaths are the only spellings that mean all entities.
var allPaths = []string{configure, configure + "/", variant, variant + "/", strings.TrimSuffix(alias, "/"), alias}

// pieces are inserted into paths at random.
var pieces = []string{
	"/", "//", "/.", "/..", "/./", "/../", "/e1", "/e1/..", "/a%2fb/..", "/%2e", "/%2e%2e", "/%2f", "%2f", "%2F..",
	"/hooks", "/HOOKS", "/api", "/configure", "/configure-webhook", "\\", ";", "%5c", "%00", "%252f", "?", "#", "/a%2f%2fb/../..",
}

// spoiled returns a path that isn't in allPaths, but that somebody may clean to one of them.
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
		run(m.name, false, m.mount(t, newHandler(t, st, options())), st)
	}
	for _, m := range alternatives {
		st := newRecorder()
		run(m.name, m.fails, m.on(t, st), st)
		if !m.strips {
			h := newHandler(t, st, options())
			run(m.name+", inside Before", false, h.Before(m.mount(t, h)), st)
		}
	}
}
