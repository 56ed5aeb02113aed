package portal_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestPages: overrides come 25 a page, are found by the start of their identifiers, and are
// counted up to a thousand.
func TestPages(t *testing.T) {
	f := newFixture(t)
	f.store = shortPages{f.store.(lister)}
	changes := []webhookcfg.Change{hooktest.SetAll(acme, 1)}
	for i := range 1003 {
		changes = append(changes, hooktest.Set(acme, fmt.Sprintf("e%04d", i), i+2))
	}
	changes = append(changes, hooktest.Unset(acme, "e00", 2000))
	hooktest.Apply(t, f.store, changes...)
	p := f.serve(t)
	p.signIn()
	seen, pages := map[string]bool{}, 0
	for path := ""; ; pages++ {
		page := p.get(path)
		for _, part := range strings.Split(page.text, `href="?page=entity&amp;id=`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			seen[id] = true
		}
		_, rest, more := strings.Cut(page.text, `<a rel="next" href="`)
		if !more {
			break
		}
		path, _, _ = strings.Cut(rest, `"`)
		path = pageOf(html.UnescapeString(path))
	}
	if len(seen) != 1004 || pages != 40 {
		t.Errorf("saw %d on %d pages", len(seen), pages+1)
	}
	p.get("all").expect(t, http.StatusOK, "at least 1000 have their own")
	found := p.get("?find=e00")
	found.expect(t, http.StatusOK, ">e00<", ">e0000<", "find=e00&amp;after=e0023", "!>e0100<")
	p.get("?find=e00&after=e0074").expect(t, http.StatusOK, ">e0099<", "!>e0100<", "!rel=\"next\"", "!>e00<")
	p.get("?find=e0042").expect(t, http.StatusOK, ">e0042<", "!>e0043<", `href="?page=entity&amp;id=e0042"`)
	p.get("?find=x").expect(t, http.StatusOK, "has an ID that starts like this", `href="?page=entity&amp;id=x"`)
	p.get("?find=a/b").expect(t, http.StatusBadRequest, "Correct it")
}

// emptyPages finds nothing within the time that a Lister has, however often it is asked.
type emptyPages struct {
	lister
	calls *int
}

func (s emptyPages) List(ctx context.Context, client, after string, _ int) (webhookcfg.Page, error) {
	page, err := s.lister.List(ctx, client, after, 1)
	*s.calls++
	page.Overrides, page.Next = nil, fmt.Sprint("e", *s.calls)
	return page, err
}

// TestAllGivesUpCounting: the page of all entities comes, even if the store doesn't get to the end.
func TestAllGivesUpCounting(t *testing.T) {
	f, calls := newFixture(t), 0
	f.store = emptyPages{f.store.(lister), &calls}
	p := f.serve(t)
	p.signIn()
	calls = 0
	p.get("all").expect(t, http.StatusOK, "if any have their own. There is no way back.", "!at least 0")
	if calls > 20 {
		t.Errorf("%d calls of List", calls)
	}
}

// TestDeliveries: pages show how deliveries go, and how to repair them. Even with an unknown
// state, you can change a webhook.
func TestDeliveries(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := at.AddDate(100, 0, 0)
	tests := map[string]struct {
		status webhookcfg.DeliveryStatus
		err    error
		want   []string
	}{
		"none":    {webhookcfg.DeliveryStatus{}, nil, []string{"No deliveries known", "!Last success"}},
		"ok":      {webhookcfg.DeliveryStatus{State: "ok", LastSuccess: at}, nil, []string{"Delivered", "Last success: 2026-01-02 03:04 UTC", "Last failure: never"}},
		"failing": {webhookcfg.DeliveryStatus{State: "failing", Reason: "status", LastFailure: at}, nil, []string{"Failing", "Your server responded with an error.", "with the next notification at the latest."}},
		"paused": {
			webhookcfg.DeliveryStatus{State: "failing", Reason: "status", LastFailure: at, PausedUntil: later},
			nil,
			[]string{"Failing", "Your server responded with an error.", "Paused until 2126-01-02 03:04:05 UTC, because"},
		},
		"pause is over": {webhookcfg.DeliveryStatus{State: "failing", Reason: "status", LastFailure: at, PausedUntil: at}, nil, []string{"Failing", "!Paused", "with the next notification at the latest."}},
		"stopped":       {webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone", LastFailure: at}, nil, []string{"Stopped", "is gone (410)", "then set the webhook again"}},
		"refused":       {webhookcfg.DeliveryStatus{State: "stopped", Reason: "refused"}, nil, []string{"Stopped", "no longer allow", "ask us why"}},
		"no word":       {webhookcfg.DeliveryStatus{State: "sleeping"}, nil, []string{"Not known right now", "!sleeping"}},
		"unknown":       {webhookcfg.DeliveryStatus{}, fmt.Errorf("no record of %s", hookURL), []string{"Not known right now", "Starts with https://"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var records strings.Builder
			f.handler.Logger = textLogger(&records)
			f.handler.DeliveryStatus = func(_ context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
				if client != acme || (entity == "") != (hook.Source == webhookcfg.SourceBase) && entity != "e2" {
					t.Errorf("asked for %q %q %v", client, entity, hook.Source)
				}
				return tt.status, tt.err
			}
			set := func(scope webhookcfg.Scope) webhookcfg.Change {
				return hooktest.At(1, webhookcfg.SetChange(acme, scope, egress.NewURL(hookURL)))
			}
			hooktest.Apply(t, f.store, set(webhookcfg.All()), set(webhookcfg.Entity("e1")))
			p := f.serve(t)
			p.signIn()
			for _, path := range []string{"entity?id=e1", "entity?id=e2", "all", ""} {
				page := p.get(path)
				page.text = html.UnescapeString(page.plain())
				page.expect(t, http.StatusOK, tt.want...)
			}
			if strings.Contains(records.String(), "t0ken") || strings.Contains(records.String(), "no record") != (tt.err != nil) {
				t.Errorf("logged %s", &records)
			}
		})
	}
}

// TestHostileTexts: identifiers, URLs, actors and searches stay text, with any characters,
// and come back unchanged.
func TestHostileTexts(t *testing.T) {
	const script = `"><script>alert(1)</script>`
	for _, id := range []string{script, `{{.Client}}`, `a b&c=d#e?f..g%2f+h`, `<img src=x onerror=alert(1)>`, `javascript:alert(1)`, `'onfocus='x`, "&lt;b&gt;", "\u202eevil"} {
		t.Run(id, func(t *testing.T) {
			f := newFixture(t).hosted()
			client := f.portal.Client
			f.portal.Client = func(r *http.Request) (string, string, error) {
				client, _, err := client(r)
				return client, id, err
			}
			f.handler.ValidEntityID = func(string) bool { return true }
			p := f.serve(t)
			p.setCookie("session", "ann")
			if strings.Contains(id, "/") { // which no identifier has
				got := p.post("set", "id", id, "url", id)
				got.expect(t, http.StatusBadRequest, "!"+id)
				id = strings.ReplaceAll(id, "/", "")
			}
			got := p.post("set", "id", id, "url", hookURL)
			got.expect(t, http.StatusOK, "!<script", "!<b>", "!<img")
			if got := f.resolved(t, id); got != "override "+hookURL {
				t.Errorf("set %s", got)
			}
			list := p.get("")
			list.expect(t, http.StatusOK, "!<script", "!<b>", "!<img")
			for _, page := range []shown{got, list} {
				page.text = html.UnescapeString(page.text)
				page.expect(t, http.StatusOK, ">"+id+"<")
			}
			p.do(p.request("GET", got.at)).expect(t, http.StatusOK, "has a webhook of its own")
			bad := p.post("set", "id", id, "url", "javascript:"+script)
			bad.expect(t, http.StatusBadRequest, "This URL isn&#39;t allowed", "!<script", "javascript:&#34;&gt;")
			next := p.post("unset", "id", id)
			next.expect(t, http.StatusOK, "has no webhook now.", "!<script")
		})
	}
}

// TestOneOnly: no form changes all entities. Those that reach all and change no webhook still do.
func TestOneOnly(t *testing.T) {
	for name, set := range map[string]func(*fixture){
		"portal":  func(f *fixture) { f.portal.OneOnly = true },
		"handler": func(f *fixture) { f.handler.AllScope = webhookcfg.AllScopeRefused },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			set(f)
			p := f.serve(t)
			p.signIn()
			p.get("").expect(t, http.StatusOK, `!href="?page=all"`, "!Default")
			p.get("all").expect(t, http.StatusOK, "!confirm")
			hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
			p.get("").expect(t, http.StatusOK, `!href="?page=all"`, "Default")

			f, _, _ = complete(t)
			set(f)
			p = f.serve(t)
			p.signIn()
			for _, path := range formPaths {
				if !strings.HasSuffix(path, "all") {
					continue
				}
				got := p.postRaw(path, filledIn(t, formFields(path)).Encode())
				switch {
				case path != "test-all" && path != "again-all":
					got.expect(t, http.StatusForbidden, "Set each entity by itself")
				case got.status != http.StatusOK:
					t.Errorf("%s: got %d %s", path, got.status, got.text)
				}
			}
		})
	}
}

// TestLongIdentifier: a change of an entity whose identifier fits no address leads to the
// overview.
func TestLongIdentifier(t *testing.T) {
	f := newFixture(t)
	f.handler.ValidEntityID = func(string) bool { return true }
	p := f.serve(t)
	p.signIn()
	id := strings.Repeat("ü", 1000)
	p.post("set", "id", id, "url", hookURL).expect(t, http.StatusOK, "The webhook is set.", ">"+id+"<", "<h2 id=\"base\">")
	if got := f.resolved(t, id); got != "override "+hookURL {
		t.Errorf("set %s", got)
	}
}

// TestUnreadableEntity: if an entity can't be read, or isn't named, no page shows the default instead,
// not even after a sign-in. There, what was typed is kept.
func TestUnreadableEntity(t *testing.T) {
	f, _, _ := complete(t)
	var err error
	f.handler.EntityExists = func(context.Context, string, string) (bool, error) { return false, err }
	p := f.serve(t)
	isRefused := func(page shown) bool {
		return page.status >= 400 && strings.Contains(page.text, `role="alert"`) && !strings.Contains(page.text, "test-all")
	}
	for _, err = range []error{nil, errBroken} {
		for _, path := range []string{"set", "unset", "test", "try"} {
			p.signIn()
			for _, query := range []string{"", "?show=1", "?id=e77&show=1"} {
				if got := p.get(path + query); !isRefused(got) {
					t.Errorf("%s%s: %d %s", path, query, got.status, got.text)
				}
			}
			fields := fieldsOf(path, "id", "e77", "url", otherURL)
			if path == "unset" || path == "test" {
				page := p.post(path, fields...)
				if !isRefused(page) || page.hidden().Get("id") != "e77" || !strings.Contains(page.text, `action="?page=`+path+`"`) {
					t.Errorf("a form of %s: %d %s", path, page.status, page.text)
				}
			}
			p.post("sign-out")
			page := p.signInAt(p.post(path, fields...), secret)
			kept := page.hidden()
			if !isRefused(page) || kept.Get("id") != "e77" || slices.Contains(fields, "url") && kept.Get("url") != otherURL {
				t.Errorf("%s after a sign-in: %d %s", path, page.status, page.text)
			}
		}
		if got := p.get("?find=e1"); err != nil && got.status != http.StatusServiceUnavailable || err == nil && got.status != http.StatusOK {
			t.Errorf("%v: a search: %d %s", err, got.status, got.text)
		}
	}
}

// TestLinks: a link can name the entity that the page is about, and have fields that mean
// nothing here. It fills in no field, even after a sign-in.
func TestLinks(t *testing.T) {
	const link = "entity?id=e1&utm_source=mallory&endpoint_id=mallory"
	p := newFixture(t).serve(t)
	p.get(link).expect(t, http.StatusForbidden, `name="id" value="e1"`, "!mallory")
	p.signIn()
	p.get(link).expect(t, http.StatusOK, `<h1 class="id" dir="auto">e1</h1>`, "!mallory")
	p.get("style?v=2").expect(t, http.StatusOK, "--whp-text")
}

// TestTurnedOff: each page about an entity that's turned off says so, and none says that nothing is
// set.
func TestTurnedOff(t *testing.T) {
	f, q, tests := complete(t)
	hooktest.Apply(t, f.store, hooktest.Unset(acme, "e1", 9))
	q.all[acme] = []sent.Notification{{ID: "msg_01", Entity: "e1", State: "dropped", Reason: "off", Made: made}}
	p := f.serve(t)
	p.signIn()
	for _, path := range []string{"entity?id=e1", "notifications?id=e1", "notification?message=msg_01"} {
		p.get(path).expect(t, http.StatusOK, "The entity was turned off, so it was sent nowhere.", "!No webhook")
	}
	p.get("entity?id=e1").expect(t, http.StatusOK, "This entity is turned off")
	p.get("key?id=e1").expect(t, http.StatusOK, "!yet")
	p.post("test", "id", "e1").expect(t, http.StatusConflict, "This entity is turned off, so no test was sent.", "!No webhook")
	if tests.Load() > 0 {
		t.Error("a test was sent")
	}
}

// TestDropped: before a change of all drops overrides, a person reads which, and that there's no way
// back. The page names ten, and says how many more there are. It's the same before a set and an unset.
func TestDropped(t *testing.T) {
	for n, want := range map[int]string{
		0:  "",
		1:  "1 have their own. There is no way back. e00",
		10: "10 have their own. There is no way back. e00 e01 e02 e03 e04 e05 e06 e07 e08 e09",
		13: "13 have their own. There is no way back. e00 e01 e02 e03 e04 e05 e06 e07 e08 e09 and 3 more",
	} {
		f := newFixture(t)
		f.store = shortPages{f.store.(lister)}
		hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
		for i := range n {
			hooktest.Apply(t, f.store, hooktest.Unset(acme, fmt.Sprintf("e%02d", i), i+2)) // off ones are dropped, too
		}
		p := f.serve(t)
		p.signIn()
		for _, page := range []shown{p.get("all"), p.post("all", "url", otherURL, "confirm", "al"), p.post("unset-all", "confirm", "")} {
			if got := strings.Count(page.plain(), want); want != "" && got != 2 || want == "" && strings.Contains(page.text, "no way back") {
				t.Errorf("%s: %d overrides: %d times %q in %s", page.at, n, got, want, page.plain())
			}
		}
	}
	f := newFixture(t)
	for i := range 1003 {
		hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprintf("e%04d", i), i+1))
	}
	p := f.serve(t)
	p.signIn()
	p.get("all").expect(t, http.StatusOK, "at least 1000 have their own. There is no way back.", ">e0009<", "!>e0010<", "and at least 990 more")
}

// TestWayBack: a person reads that the default doesn't come back before they set an entity that it
// applies to.
func TestWayBack(t *testing.T) {
	const text = "The only way back is to set all entities again."
	f := newFixture(t)
	p := f.serve(t)
	p.signIn()
	for _, path := range []string{"", "entity?id=e1"} {
		p.get(path).expect(t, http.StatusOK, "!"+text)
	}
	hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1), hooktest.Set(acme, "e2", 2))
	for _, path := range []string{"", "entity?id=e1"} {
		p.get(path).expect(t, http.StatusOK, text)
	}
	p.get("entity?id=e2").expect(t, http.StatusOK, "!"+text)
}
