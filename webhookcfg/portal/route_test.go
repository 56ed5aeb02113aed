package portal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
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

// TestAddresses: no link, form, stylesheet or redirect has a path, so they all lead back to the
// portal, wherever it is mounted, and whatever a proxy has made of the path of the request.
func TestAddresses(t *testing.T) {
	f, _, _ := complete(t)
	for i := range 30 { // for a second page
		hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprint("e", i), i+3))
	}
	p := f.serve(t)
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	seen := 0
	check := func(page shown) {
		t.Helper()
		if to := page.header.Get("Location"); to != "" && !strings.HasPrefix(to, "?page=") {
			t.Errorf("%s leads to %s", page.at, to)
		}
		for _, address := range anyAddress.FindAllStringSubmatch(page.text, -1) {
			seen++
			if !strings.HasPrefix(address[1], "?") && !strings.HasPrefix(address[1], "#") {
				t.Errorf("%s: the address %s", page.at, address[1])
			}
		}
	}
	for name := range routes {
		p.signIn()
		for _, query := range []string{"", "?id=e1&show=1", "?message=msg_01", "?after=e1", "?find=e1", "?nothing=1", "?id=" + strings.Repeat("x", 4096)} {
			check(p.get(name + query))
		}
		form := url.Values{}
		if name != "sign-in" {
			form = filledIn(t, formFields(name))
		}
		for _, missing := range []string{"", "url", "confirm", "client"} {
			form.Del(missing)
			check(p.postRaw(name, form.Encode()))
		}
		p.post("sign-out")
		check(p.get(name + "?id=e1"))
		check(p.postRaw(name, form.Encode()))
	}
	if seen < 500 {
		t.Errorf("the pages have %d addresses", seen)
	}
}

var anyAddress = regexp.MustCompile(`(?:href|action|src)="([^"]*)"`)

// TestAnyPath: the path doesn't matter, and chooses no page.
func TestAnyPath(t *testing.T) {
	pages := newFixture(t).new(t)
	for _, path := range []string{"/", "/portal", "/portal/", "/portal%2fset", "/sign-in", "/x/..%2fportal", "//"} {
		for query, want := range map[string]int{"": 403, "?page=set&id=e1": 403, "?page=sign-in": 303, "?page=set/": 404, "?page=/set": 404, "?page=": 404, "?page=set&page=set": 400, "?PAGE=set": 400} {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest("GET", path+query, nil))
			if w.Code != want {
				t.Errorf("%s%s: got %d, want %d", path, query, w.Code, want)
			}
		}
	}
}

// TestLongQuery: a long query gets a short page, also from people who aren't signed in.
func TestLongQuery(t *testing.T) {
	p := newFixture(t).serve(t)
	fits := "entity?id=" + strings.Repeat("%22", (4<<10-len("page=entity&id="))/3)
	p.get(fits).expect(t, http.StatusForbidden, "&#34;&#34;")
	for _, path := range []string{"", "sign-in", "set", "style", "nothing"} {
		for _, method := range []string{"GET", "POST"} {
			got := p.do(p.request(method, path+"?id="+strings.Repeat("%22", 4<<10/3+1), "id", "e1", "url", hookURL))
			got.expect(t, http.StatusRequestURITooLong, "The address of this page is too long", "!%22", "!&#34;&#34;")
		}
	}
	p.get("?id=%zz").expect(t, http.StatusBadRequest, "Correct it")
}
