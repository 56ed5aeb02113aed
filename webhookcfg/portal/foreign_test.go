package portal_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestForeignIdentifiers: whoever puts the identifiers of another client into an address or a
// form sees nothing of that client, and does nothing to it. If the host knows whose an entity
// is, the page says that there's none.
func TestForeignIdentifiers(t *testing.T) {
	for _, isKnown := range []bool{true, false} {
		for _, path := range pagePaths {
			for _, fields := range [][]string{routes[path].Query, formFields(path)} {
				names := slices.ContainsFunc(fields, func(field string) bool { return field == "id" || field == "message" })
				if !names {
					continue
				}
				f, q, tests := complete(t)
				q.plan = sent.Plan{}
				q.all["other"] = []sent.Notification{{ID: "foreign", Entity: "theirs", State: "delivered", Made: made, Body: []byte("their body")}}
				f.portal.NotificationBodies = true
				if isKnown {
					f.handler.EntityExists = func(_ context.Context, client, entity string) (bool, error) {
						return (entity == "theirs") == (client == "other"), nil
					}
				}
				hooktest.Apply(t, f.store, hooktest.SetAll("other", 8), hooktest.Set("other", "theirs", 9))
				p := f.serve(t)
				p.signIn()
				filled := filledIn(t, fields)
				filled.Del("after") // from the first page
				for field, foreign := range map[string]string{"id": "theirs", "message": "foreign"} {
					if filled.Has(field) {
						filled.Set(field, foreign)
					}
				}
				isForm := filled.Has("client")
				var got shown
				if isForm {
					got = p.postRaw(path, filled.Encode())
				} else {
					got = p.get(path + "?" + filled.Encode())
				}
				for _, shown := range []string{hooktest.URL(8).Reveal(), hooktest.URL(9).Reveal(), "whsec_other", "their body", `href="?page=notification&amp;message=foreign"`} {
					if strings.Contains(got.text, shown) {
						t.Errorf("%s?%s shows %s", path, filled.Encode(), shown)
					}
				}
				for entity, n := range map[string]int{"theirs": 9, "any": 8} {
					hook, err := f.store.Resolve(t.Context(), "other", entity)
					if err != nil || hook.URL.Reveal() != hooktest.URL(n).Reveal() {
						t.Errorf("%s: changed %s of the other client to %v, %v", path, entity, hook, err)
					}
				}
				for _, again := range q.again {
					if !strings.HasPrefix(again, acme+" ") {
						t.Errorf("%s: sent again %s", path, again)
					}
				}
				isMissing := got.status == http.StatusNotFound || strings.Contains(got.text, "There are none here") || strings.Contains(got.text, "There is nothing to send again") || strings.Contains(got.text, "Entities with a setting of their own")
				if (isKnown || filled.Has("message")) && (!isMissing || tests.Load() > 0) {
					t.Errorf("%s?%s: got %d with %d tests: %s", path, filled.Encode(), got.status, tests.Load(), got.text)
				}
			}
		}
	}
}

// TestForeignFieldsInLog: what a stranger puts into the header isn't in the log as it came.
func TestForeignFieldsInLog(t *testing.T) {
	var records bytes.Buffer
	f := newFixture(t)
	f.handler.Logger = slog.New(slog.NewJSONHandler(&records, nil))
	h := f.new(t)
	const odd = "x\u009b2J\u009b1;31m\u202evil"
	for _, site := range []string{"", odd + strings.Repeat("y", 1000)} {
		r := httptest.NewRequest("POST", "/?page=set", strings.NewReader("a=b"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://"+odd)
		r.Header.Set("Sec-Fetch-Site", site)
		r.Host = odd + ".example.com"
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(records.String(), "x2J1;31mvil"); n != 5 || strings.ContainsAny(records.String(), "\u009b\u202e") || records.Len() > 2000 {
		t.Errorf("%d fields: %+q", n, records.String())
	}
}
