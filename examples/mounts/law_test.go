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

var update = flag.Bool("update", false, "write testdata/answers.txt anew")

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// mount is one that the README shows.
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

// answered is a request with what became of it, redirects followed.
type answered struct {
	request
	outcome string   // of the request itself
	changes []string // all that it and the redirects did
}

// widened reports whether the request broke the law.
func (a answered) widened() bool {
	return !a.meansAll() && slices.ContainsFunc(a.changes, func(change string) bool { return strings.HasSuffix(change, " all") })
}

func (a answered) String() string {
	line := fmt.Sprintf("%s %s: %s", a.method, a.target, a.outcome)
	if followed := strings.Join(a.changes, ", "); followed != "" && followed != a.outcome {
		line += ", followed: " + followed
	}
	if a.widened() {
		line += " (WIDENED)"
	}
	return strings.ReplaceAll(line, "/api/v1/configure/configure-webhook", "/…")
}

// drive sends the whole table, following redirects with the same method and body,
// as clients do on 307, and some also on 301.
func drive(t testing.TB, mounted any, st *recorder) []answered {
	t.Helper()
	address := serve(t, mounted)
	all := make([]answered, len(requests))
	for i, q := range requests {
		got, changes, location := send(t, address, st, q, q.target)
		all[i] = answered{q, got, changes}
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

// pathOf is where a redirect leads on the same host, as it stands there.
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

// TestLaw: none of the mounts that the README shows ever serves as "all" what
// means one entity or is malformed, nor leads there.
func TestLaw(t *testing.T) {
	for _, m := range mounts {
		st := newRecorder()
		for _, a := range drive(t, m.mount(t, newHandler(t, st, options())), st) {
			if a.widened() || a.meansAll() && a.outcome != a.want {
				t.Errorf("%s: %v", m.name, a)
			}
		}
	}
}

// TestLawBroken: the table catches the mounts that break the law.
func TestLawBroken(t *testing.T) {
	for _, m := range alternatives {
		st := newRecorder()
		answers := drive(t, m.on(t, st), st)
		if broken := slices.ContainsFunc(answers, answered.widened); broken != m.breaks {
			t.Errorf("%s: breaks the law: %t, want %t", m.name, broken, m.breaks)
		}
	}
}

// TestBeforeCloses: standing before any of the net/http mounts, also those that
// break the law by themselves, Before keeps it, and nothing that claims to be ours
// is answered by anybody else.
func TestBeforeCloses(t *testing.T) {
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

const legend = `What each mount answers differently from the handler by itself, line by line of
the table in requests_test.go. A redirect is followed with the same method and
body; WIDENED marks what then reaches all entities and must not. The path
/hooks/… is /hooks/api/v1/configure/configure-webhook.

`

// TestAnswers holds what each mount answers differently from the handler by itself
// to testdata/answers.txt, so that a difference cannot come or go unseen.
func TestAnswers(t *testing.T) {
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
	const golden = "testdata/answers.txt"
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
