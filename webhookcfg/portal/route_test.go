package portal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUnservedRequests: a request that no page makes gets a page, and changes nothing.
func TestUnservedRequests(t *testing.T) {
	f := newFixture(t)
	p := f.serve(t)
	p.signIn()
	p.get("nothing").expect(t, http.StatusNotFound, "There is no such page")
	p.get("set/").expect(t, http.StatusNotFound, "There is no such page")
	if got := p.get("sign-out"); got.at != "overview" || got.status != http.StatusOK {
		t.Errorf("GET of sign-out: %d at %s", got.status, got.at)
	}
	p.get("set?id=e1").expect(t, http.StatusOK, "Nothing is set")
	for _, path := range []string{"", "entity", "key"} {
		got := p.post(path, "id", "e1")
		got.expect(t, http.StatusMethodNotAllowed, "can&#39;t be used like this")
		if got.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", path)
		}
	}
	p.do(p.request("DELETE", "set")).expect(t, http.StatusMethodNotAllowed, "can&#39;t be used like this")
	r := p.request("POST", "set", "id", "e1", "url", hookURL)
	r.Header.Set("Content-Type", "text/plain")
	p.do(r).expect(t, http.StatusUnsupportedMediaType, "can&#39;t be read")
	p.post("set", "id", "e1", "url", hookURL+strings.Repeat("x", 20000)).expect(t, http.StatusRequestEntityTooLarge, "too long")
	r = p.request("POST", "set?%zz")
	p.do(r).expect(t, http.StatusBadRequest, "Correct it")
	p.get("key").expect(t, http.StatusNotFound, "There is no such page")
	p.post("test", "id", "e1").expect(t, http.StatusNotFound, "There is no such page")
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("changed: %s", got)
	}
}

// TestMisspelledFields: an address whose identifier has another name shows no page of the default
// or of all, but what others add to a link doesn't matter.
func TestMisspelledFields(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	p.signIn()
	for _, path := range pagePaths {
		for _, name := range []string{"ID", "Id", "id[]", "%20id", "id%20", "-id_", "Since", "After"} {
			p.get(path+"?"+name+"=e1").expect(t, http.StatusBadRequest, "belongs to another page", "!whsec_")
		}
	}
	p.get("?utm_id=1&fbclid=2&ref=id").expect(t, http.StatusOK, "!belongs to another page")
}

// TestWithoutSlash: routers such as chi and gorilla serve a mount at its path without the
// slash, and at paths that only start like it. A proxy that removes the prefix can do so, too. No
// form there leads out of the portal.
func TestWithoutSlash(t *testing.T) {
	pages := newFixture(t).new(t)
	for target, want := range map[string]string{
		"/my/portal":                              "303 ./portal/overview",
		"/my/portal?id=e%31&x":                    "303 ./portal/overview?id=e%31&x",
		"http://host/my/portal?id=e1":             "303 ./portal/overview?id=e1",
		"/my/portal/":                             "303 overview",
		"/my/portal/?find=e1":                     "303 overview?find=e1",
		"/my/portal/overview":                     "403 ",
		"/my/portal/sign-in":                      "303 overview",
		"/my/portal/%65ntity":                     "403 ",
		"/my/portal%2f":                           "303 ./portal%2f/overview",
		"/my/portal%2f/":                          "404 ",
		"/my/portal%2foverview":                   "404 ",
		"/my/portal%2Fentity":                     "404 ",
		"/my/portal%2fsign-in":                    "404 ",
		"/my/portalentity":                        "404 ",
		"/my/portalsign-in":                       "404 ",
		"/my/portal//":                            "404 ",
		"/my/portal//entity":                      "404 ",
		"/my/portal?" + strings.Repeat("x", 4097): "414 ",
	} {
		w := httptest.NewRecorder()
		http.StripPrefix("/my/portal", pages).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if got := fmt.Sprint(w.Code, " ", w.Header().Get("Location")); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	w := httptest.NewRecorder()
	http.StripPrefix("/my/portal", pages).ServeHTTP(w, httptest.NewRequest("POST", "/my/portal", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: got %d", w.Code)
	}
}

// TestLongQuery: a long query gets a short page, also from people who aren't signed in.
func TestLongQuery(t *testing.T) {
	p := newFixture(t).serve(t)
	fits := "entity?id=" + strings.Repeat("%22", (4<<10-3)/3)
	p.get(fits).expect(t, http.StatusForbidden, "&#34;&#34;")
	for _, path := range []string{"", "sign-in", "set", "style.css", "nothing"} {
		for _, method := range []string{"GET", "POST"} {
			got := p.do(p.request(method, path+strings.TrimPrefix(fits, "entity")+"%22", "id", "e1", "url", hookURL))
			got.expect(t, http.StatusRequestURITooLong, "The address of this page is too long", "!%22", "!&#34;&#34;")
		}
	}
	p.get("?id=%zz").expect(t, http.StatusBadRequest, "Correct it")
}
