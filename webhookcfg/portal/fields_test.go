package portal_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// postRaw posts a form as it's written.
func (p *person) postRaw(path, form string) shown {
	p.t.Helper()
	r := p.request("POST", path)
	body := strings.NewReader(form)
	r.Body, r.ContentLength = http.NoBody, 0
	if form != "" {
		r, _ = http.NewRequest("POST", r.URL.String(), body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return p.do(r)
}

// ownForm returns a form of a page, filled in.
func ownForm(path string) url.Values {
	values := map[string]string{"client": "client-of-anna", "id": "e1", "url": otherURL, "confirm": "all"}
	form := url.Values{}
	for field, value := range values {
		if slices.Contains(formFields(path), field) {
			form.Set(field, value)
		}
	}
	return form
}

// oddForms are forms that no page has: with a query, with a field of another page or of the
// API, with a field in another spelling, or with a field twice.
func oddForms(path string) (odd []string) {
	form := ownForm(path).Encode()
	and := func(field string) string { return strings.TrimPrefix(form+"&"+field, "&") }
	for _, query := range []string{"id=e1", "id=", "confirm=all", "url=x", "x", "=", "endpoint_id=e1"} {
		odd = append(odd, query+" "+form)
	}
	for _, field := range []string{"endpoint_id", "moc_id", "webhook_url", "ID", "Id", "id[]", "id ", "e1", "", "find", "after", "show", "then", "username", "password", "id", "url", "confirm"} {
		if !slices.Contains(formFields(path), field) {
			odd = append(odd, " "+and(url.QueryEscape(field)+"=e1"), " "+and(url.QueryEscape(field)+"="))
		}
	}
	for field := range ownForm(path) {
		odd = append(odd, " "+and(field+"="+url.QueryEscape(ownForm(path).Get(field))), " "+and(field+"="), " "+and(field+"=e2"))
	}
	return odd
}

// TestOddForms: a form with anything that the page's own doesn't have can mean something else
// than what the page would do with it, so it changes nothing, sends nothing and says so.
func TestOddForms(t *testing.T) {
	for _, mode := range []string{"signed in", "host", "nobody"} {
		for _, path := range []string{"set", "unset", "all", "unset-all", "test", "sign-out"} {
			t.Run(mode+": "+path, func(t *testing.T) {
				f := newFixture(t)
				f.verifier, f.store = pair{}, store.NewMemory()
				tests := 0
				f.portal.Test = func(context.Context, string, string) (string, error) { tests++; return "", nil }
				if mode == "host" {
					f.hosted()
					f.portal.Client = func(*http.Request) (string, string, error) { return "client-of-anna", "ann", nil }
				}
				hooktest.Apply(t, f.store, hooktest.SetAll("client-of-anna", 1), hooktest.Set("client-of-anna", "e1", 2))
				p := f.serve(t)
				if mode == "signed in" {
					p.get("")
					p.post("sign-in", "username", "anna", "password", secret, "then", "")
				}
				before, session := contents(t, f.store), p.cookie(cookieName)
				for _, odd := range oddForms(path) {
					query, form, _ := strings.Cut(odd, " ")
					at := path
					if query != "" {
						at += "?" + query
					}
					got := p.postRaw(at, form)
					if got.status != http.StatusBadRequest || !strings.Contains(got.text, "This form isn&#39;t one of ours, so nothing was changed") || strings.Contains(got.text, "Send it again") {
						t.Errorf("%s with %s: %d %s", at, form, got.status, got.text)
					}
				}
				if after := contents(t, f.store); after != before || tests != 0 || p.cookie(cookieName) != session {
					t.Errorf("changed from %s to %s, %d tests", before, after, tests)
				}
				if mode != "nobody" {
					p.postRaw(path, ownForm(path).Encode()).expect(t, map[bool]int{true: 403, false: 200}[path == "sign-out" && mode == "signed in"], "!isn&#39;t one of ours")
				}
			})
		}
	}
}

// TestTestWithoutIdentifier: an empty identifier never means the default.
func TestTestWithoutIdentifier(t *testing.T) {
	f := newFixture(t).hosted()
	f.portal.Test = func(_ context.Context, _, entity string) (string, error) {
		t.Errorf("a test of %q", entity)
		return "", nil
	}
	hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
	p := f.serve(t)
	p.setCookie("session", "ann")
	p.post("test", "id", "").expect(t, http.StatusBadRequest, "Type the ID of an entity")
}

// TestOddFormAtSignIn: a sign-in keeps a form only if the page that asked for it has one with
// these fields. Otherwise nobody is signed in.
func TestOddFormAtSignIn(t *testing.T) {
	for name, odd := range map[string]string{
		"a query":                       "?id=e1 then=all",
		"an entity for all":             " then=all&again=1&id=e1&url=x&confirm=all",
		"an entity for removing all":    " then=unset-all&again=1&id=e1&confirm=all",
		"an entity for the page of all": " then=all&id=e1",
		"an entity for the overview":    " then=&id=e1",
		"a URL for the key":             " then=key&id=e1&url=x",
		"the word for one":              " then=set&again=1&id=e1&url=x&confirm=all",
		"a URL for turning off":         " then=unset&again=1&id=e1&url=x",
		"a URL for a test":              " then=test&again=1&id=e1&url=x",
		"a URL for a link":              " then=set&id=e1&url=x",
		"a URL for a page":              " then=entity&again=1&id=e1&url=x",
		"two pages":                     " then=entity&then=all",
		"two identifiers":               " then=entity&id=e1&id=e2",
		"an unknown field":              " then=entity&endpoint_id=e1",
		"two ids":                       " then=&username=bert",
		"two secrets":                   " then=&password=x",
	} {
		f := newFixture(t)
		f.verifier = pair{}
		p := f.serve(t)
		p.get("")
		query, form, _ := strings.Cut(odd, " ")
		got := p.postRaw("sign-in"+query, form+"&username=anna&password="+secret)
		if got.status != http.StatusBadRequest || !strings.Contains(got.text, "This form isn&#39;t one of ours") || strings.Contains(got.text, "Send it again") || p.cookie(cookieName) != "" {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	for _, own := range []string{"then=set&again=1&client=client-of-anna&id=e1&url=x", "then=all&again=1&client=client-of-anna&url=x&confirm=all", "then=entity&id=e1", "then=unset&again=1&client=client-of-anna&id=e1", "then=set&id=e1", "then=key&id=e1"} {
		f := newFixture(t)
		f.verifier = pair{}
		f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "key", nil }
		p := f.serve(t)
		p.get("")
		p.postRaw("sign-in", own+"&username=anna&password="+secret).expect(t, http.StatusOK, "Signed in as")
	}
}

// TestOddAddress: an address with a field of another page, or with one twice, gets a sentence.
// So nobody takes the page of all entities for the one of the entity that they meant.
func TestOddAddress(t *testing.T) {
	taken := map[string][]string{"": {"show", "find", "after"}, "entity": {"show", "id"}, "set": {"show", "id", "find", "after"}, "all": {"show"}, "unset-all": {"show"}, "test": {"show", "id"}, "key": {"id"}, "sign-in": nil, "sign-out": nil}
	f := newFixture(t).hosted()
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "key", nil }
	p := f.serve(t)
	p.setCookie("session", "ann")
	const refusal = "The address of this page has a part"
	for _, path := range slices.Sorted(maps.Keys(taken)) {
		for _, field := range []string{"show", "id", "find", "after", "url", "confirm", "client", "then", "again", "username", "password"} {
			got := p.get(path + "?" + field + "=e1")
			if strings.Contains(got.text, refusal) == slices.Contains(taken[path], field) {
				t.Errorf("%s?%s: %d %s", path, field, got.status, got.text)
			}
			p.get(path+"?"+field+"=e1&"+field+"=e2").expect(t, http.StatusBadRequest, refusal, "Go to the webhooks")
		}
	}
}

// TestAddressesAfterSignIn: the links of a page that a sign-in shows lead to that page.
func TestAddressesAfterSignIn(t *testing.T) {
	f := newFixture(t)
	p := f.serve(t)
	p.get("")
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
	p.post("sign-in", "username", acme, "password", secret, "then", "set", "again", "1", "id", "e1", "url", otherURL).expect(t, http.StatusOK, `href="set?id=e1&amp;show=1"`)
	p.get("set?id=e1&show=1").expect(t, http.StatusOK, hooktest.URL(1).Reveal(), `href="set?id=e1"`)
	p.get("").expect(t, http.StatusOK, `!href="?`)
}
