package portal_test

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
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

// oddForms are forms that no page has: with a query, with a field of another page or of the
// API, with a field in another spelling, or with a field twice.
func oddForms(t *testing.T, path string) (odd []string) {
	t.Helper()
	own := filledIn(t, formFields(path))
	form := own.Encode()
	and := func(field string) string { return strings.TrimPrefix(form+"&"+field, "&") }
	for _, query := range []string{"id=e1", "id=", "confirm=all", "url=x", "x", "=", "endpoint_id=e1", "message=msg_01"} {
		odd = append(odd, query+" "+form)
	}
	for _, field := range append([]string{"endpoint_id", "moc_id", "webhook_url", "ID", "Id", "id[]", "id ", "e1", ""}, allFields...) {
		if !slices.Contains(routes[path].Form, field) {
			odd = append(odd, " "+and(url.QueryEscape(field)+"=e1"), " "+and(url.QueryEscape(field)+"="))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(own)) {
		odd = append(odd, " "+and(field+"="+url.QueryEscape(own.Get(field))), " "+and(field+"="), " "+and(field+"=e2"))
	}
	return odd
}

// TestOddForms: a form with anything that the page's own doesn't have can mean something else
// than what the page would do with it, so it changes nothing, sends nothing and says so.
func TestOddForms(t *testing.T) {
	for m, mode := range []string{"signed in", "host", "nobody"} {
		for _, path := range append(slices.Clone(formPaths), "sign-out") {
			t.Run(mode+": "+path, func(t *testing.T) {
				f, q, tests := complete(t)
				if mode == "host" {
					f.hosted()
				}
				p := f.serve(t)
				switch mode {
				case "signed in":
					p.signIn()
				case "host":
					p.setCookie("session", "ann")
				}
				before, session := contents(t, f.store), p.cookie(cookieName)
				for i, odd := range oddForms(t, path) {
					if !*isFull && i%3 != m { // each in one of the modes
						continue
					}
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
				if after := contents(t, f.store); after != before || tests.Load() != 0 || len(q.again) > 0 || p.cookie(cookieName) != session {
					t.Errorf("changed from %s to %s, %d tests, sent again %q", before, after, tests.Load(), q.again)
				}
				if mode != "nobody" {
					p.postRaw(path, filledIn(t, formFields(path)).Encode()).expect(t, map[bool]int{true: 403, false: 200}[path == "sign-out" && mode == "signed in"], "!isn&#39;t one of ours")
				}
			})
		}
	}
}

// TestFormsOfAll: what reaches all entities never takes the identifier of one, and what reaches
// one never does without. So nobody can take one for the other.
func TestFormsOfAll(t *testing.T) {
	for _, path := range formPaths {
		r := routes[path]
		names := func(fields []string) bool { return slices.Contains(fields, "id") || slices.Contains(fields, "message") }
		isOfAll := strings.HasSuffix(path, "all")
		if names(r.Query) == isOfAll || names(r.Form) == isOfAll {
			t.Errorf("%s takes %q in its address and %q in its form", path, r.Query, r.Form)
		}
	}
}

// TestIncompleteForms: a form that has lost a field, or the text in one, does nothing. In particular,
// it never means all entities, or any time.
func TestIncompleteForms(t *testing.T) {
	for _, path := range formPaths {
		for _, field := range formFields(path) {
			if path == "try-all" && field == "confirm" {
				continue // which is for the change after it
			}
			f, q, tests := complete(t)
			p := f.hosted().serve(t)
			p.setCookie("session", "ann")
			before := contents(t, f.store)
			for _, isEmpty := range []bool{true, false} {
				form := filledIn(t, formFields(path))
				form.Del(field)
				if isEmpty {
					form.Set(field, "")
				}
				got := p.postRaw(path, form.Encode())
				if got.status < http.StatusBadRequest || contents(t, f.store) != before || tests.Load() > 0 || len(q.again) > 0 {
					t.Errorf("%s with %v: %d, %d tests, sent again %q: %s", path, form, got.status, tests.Load(), q.again, got.text)
				}
			}
		}
	}
}

// TestOddFormAtSignIn: a sign-in keeps a form only if the page that asked for it has one with
// these fields, and an address likewise. Otherwise nobody is signed in.
func TestOddFormAtSignIn(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	p.get("")
	const refusal = "This form isn&#39;t one of ours"
	refused := func(query string, form string) {
		t.Helper()
		got := p.postRaw("sign-in"+query, form+"&username=acme&password="+secret)
		if got.status != http.StatusBadRequest || !strings.Contains(got.text, refusal) || strings.Contains(got.text, "Send it again") || p.cookie(cookieName) != "" {
			t.Fatalf("%s with %s: %d %s", query, form, got.status, got.text)
		}
	}
	refused("?id=e1", "then=all")
	for _, form := range []string{"then=entity&then=all", "then=entity&id=e1&id=e2", "then=entity&endpoint_id=e1", "then=&username=bert", "then=&password=x", "then=all&id=e1", "then=all&again=1&id=e1&url=x&confirm=all"} {
		refused("", form)
	}
	for _, path := range pagePaths {
		for _, again := range []bool{false, true} {
			own := routes[path].Query
			if again {
				own = routes[path].Form
			}
			form := filledIn(t, own)
			form.Set("then", path)
			if again {
				form.Set("again", "1")
			}
			for _, field := range allFields {
				if field != "again" && !slices.Contains(own, field) && !slices.Contains(portal.Credentials(), field) {
					odd := maps.Clone(form)
					odd.Set(field, values[field])
					refused("", odd.Encode())
				}
			}
			if again && !routes[path].HasForm {
				refused("", form.Encode())
				continue
			}
			if got := p.postRaw("sign-in", form.Encode()+"&username=acme&password="+secret); strings.Contains(got.text, refusal) || !strings.Contains(got.text, "Signed in as") {
				t.Errorf("%v: %d %s", form, got.status, got.text)
			}
			p.post("sign-out")
		}
	}
}

// TestOddAddress: an address with a field of another page, or with one twice, gets a sentence.
// So nobody takes the page of all entities for the one of the entity that they meant.
func TestOddAddress(t *testing.T) {
	f, _, _ := complete(t)
	p := f.hosted().serve(t)
	p.setCookie("session", "ann")
	const refusal = "The address of this page has a part"
	for path, r := range routes {
		for _, field := range allFields {
			one := url.Values{field: {cmp.Or(values[field], "x")}}.Encode()
			got := p.get(path + "?" + one)
			if strings.Contains(got.text, refusal) == slices.Contains(r.Query, field) {
				t.Errorf("%s?%s: %d %s", path, one, got.status, got.text)
			}
			p.get(path+"?"+one+"&"+one).expect(t, http.StatusBadRequest, refusal, "Go to the webhooks")
		}
	}
}

// TestAddressesAfterSignIn: the links of a page that a sign-in shows lead to that page.
func TestAddressesAfterSignIn(t *testing.T) {
	f := newFixture(t)
	p := f.serve(t)
	p.get("")
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
	p.post("sign-in", "username", acme, "password", secret, "then", "set", "again", "1", "id", "e1", "url", otherURL).expect(t, http.StatusOK, `href="?page=entity&amp;id=e1&amp;show=1"`)
	p.get("set?id=e1&show=1").expect(t, http.StatusOK, hooktest.URL(1).Reveal(), `href="?page=entity&amp;id=e1"`)
}

// TestLinksOfForms: whichever page a form gets that fails, its links are addresses of pages.
func TestLinksOfForms(t *testing.T) {
	f, q, _ := complete(t)
	for i := range 30 {
		hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprint("e", i), i+1))
	}
	q.err = errBroken
	f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
	p := f.serve(t)
	p.signIn()
	seen := make(map[string]bool)
	for _, path := range formPaths {
		for _, id := range []string{"e1", "a/b", ""} {
			form := filledIn(t, formFields(path))
			if form.Has("id") {
				form.Set("id", id)
			}
			page := p.postRaw(path, form.Encode())
			for _, link := range href.FindAllStringSubmatch(page.text, -1) {
				if seen[link[1]] {
					continue
				}
				seen[link[1]] = true
				if got := p.get(html.UnescapeString(link[1])); got.status == http.StatusBadRequest || got.status == http.StatusNotFound {
					t.Errorf("%s with %v: the link %s leads to %d", path, form, link[1], got.status)
				}
			}
		}
	}
}

var href = regexp.MustCompile(` href="([^"]*)"`)

// TestTypedFields: no keyboard changes what people type into a field, whichever page has it.
func TestTypedFields(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	fields := make(map[string]bool)
	look := func(page shown) {
		t.Helper()
		for _, tag := range input.FindAllString(page.text, -1) {
			if strings.Contains(tag, `type="hidden"`) || strings.Contains(tag, `type="password"`) {
				continue
			}
			fields[tag] = true
			for _, want := range []string{` autocapitalize="off"`, ` autocorrect="off"`, ` spellcheck="false"`, ` autocomplete="`} {
				if !strings.Contains(tag, want) {
					t.Errorf("%s: no%s in %s", page.at, want, tag)
				}
			}
		}
	}
	look(p.get(""))
	p.signIn()
	for _, path := range []string{"", "entity?id=e1", "all"} {
		look(p.get(path))
	}
	if len(fields) != 6 { // find, id, url, username, and two to confirm
		t.Errorf("%d fields: %q", len(fields), slices.Sorted(maps.Keys(fields)))
	}
}

var input = regexp.MustCompile(`<input [^>]*>`)

// TestBlanks: blanks around what people type don't count. Nothing but blanks is an empty field, and
// never means all entities.
func TestBlanks(t *testing.T) {
	const blank = " \u00a0\t"
	around := func(text string) string { return blank + text + blank }
	f, q, tests := complete(t)
	p := f.serve(t)
	p.get("")
	p.post("sign-in", "username", around(acme), "password", secret, "then", "overview").expect(t, http.StatusOK, "Signed in as <strong dir=\"auto\">"+acme+"</strong>")
	before := contents(t, f.store)
	for _, path := range formPaths {
		for _, field := range []string{"id", "url", "confirm", "message"} {
			if !slices.Contains(formFields(path), field) || path == "try-all" && field == "confirm" {
				continue
			}
			form := filledIn(t, formFields(path))
			form.Set(field, blank)
			got := p.postRaw(path, form.Encode())
			if got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError || contents(t, f.store) != before || tests.Load() > 0 || len(q.again) > 0 {
				t.Errorf("%s with %v: %d, %d tests, sent again %q: %s", path, form, got.status, tests.Load(), q.again, got.text)
			}
		}
	}
	p.post("set", "id", around("e2"), "url", around(otherURL)).expect(t, http.StatusOK, "The webhook is set.", `<h1 class="id" dir="auto">e2</h1>`)
	if got := f.resolved(t, "e2"); got != "override "+otherURL {
		t.Errorf("set %s", got)
	}
	p.get("?find="+url.QueryEscape(around("e2"))).expect(t, http.StatusOK, ">e2<", "!>e1<", `value="e2"`, `href="?page=entity&amp;id=e2"`)
	p.post("set", "id", "e 2", "url", otherURL).expect(t, http.StatusBadRequest, "An identifier is 1 to 128")
	p.post("all", "url", around(otherURL), "confirm", around("all")).expect(t, http.StatusOK, "The default is set for all entities.")
	if got := f.resolved(t, "e2"); got != "base "+otherURL {
		t.Errorf("set %s", got)
	}

	if err := hooktest.NewHandler(t, f.store, f.verifier, &f.handler).Set(t.Context(), acme, webhookcfg.Entity(" e2"), otherURL); err == nil {
		t.Error("the handler has removed a blank")
	}
}

// TestBlanksOfHost: if the host's identifiers can have blanks around them, a form changes the entity
// that its page shows.
func TestBlanksOfHost(t *testing.T) {
	f := newFixture(t)
	f.handler.ValidEntityID = func(string) bool { return true }
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1), hooktest.Set(acme, "e1 ", 2))
	p := f.serve(t)
	p.signIn()
	p.post("unset", "id", p.get("entity?id=e1%20").hidden().Get("id")).expect(t, http.StatusOK)
	for id, want := range map[string]string{"e1": "override " + hooktest.URL(1).Reveal(), "e1 ": "none"} {
		if got := f.resolved(t, id); got != want {
			t.Errorf("%q: got %s, want %s", id, got, want)
		}
	}
}

// TestBlanksAroundSecret: a secret is no identifier, even if it has blanks around it.
func TestBlanksAroundSecret(t *testing.T) {
	f := newFixture(t)
	f.verifier = hooktest.NewVerifier(t, acme, " "+secret+" ")
	p := f.serve(t)
	p.get("")
	p.post("sign-in", "username", acme, "password", " "+secret+" ", "then", "overview").expect(t, http.StatusOK)
	p.post("set", "id", secret, "url", otherURL).expect(t, http.StatusBadRequest, "that&#39;s your secret")
}
