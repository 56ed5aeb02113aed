package mounts

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

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
