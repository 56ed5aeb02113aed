package portal_test

import (
	"context"
	"html"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// TestTest sends tests.
func TestTest(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		status int
		want   string
	}{
		"accepted":  {"", nil, 200, "The test was accepted by your server."},
		"refused":   {"status", nil, 200, "The test failed. Your server responded with an error."},
		"too often": {"", waitError(9 * time.Second), 429, "A test was sent a moment ago, or your server asked for a pause. Try again in 9 s."},
		"soon":      {"", waitError(1100 * time.Millisecond), 429, "Try again in 2 s."},
		"never":     {"", waitError(math.MaxInt64), 429, "Try again in 9223372037 s."},
		"down":      {"", errBroken, 503, "We can't do this right now."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var tested []string
			f.portal.Test = func(_ context.Context, client, entity string) (string, error) {
				tested = append(tested, client+" "+entity)
				return tt.reason, tt.err
			}
			f.handler.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "foreign", nil }
			f.handler.DeliveryStatus = func(context.Context, string, string, webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
				return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"}, nil
			}
			hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1), hooktest.Set(acme, "e1", 2))
			p := f.serve(t)
			p.signIn()
			for _, path := range []string{"", "all", "entity?id=e1"} {
				p.get(path).expect(t, http.StatusOK, "Send a test", "Repair your server, then send a test", "!set the webhook again")
			}
			for _, page := range []shown{p.post("test", "id", "e1"), p.post("test-all")} {
				page.text = html.UnescapeString(page.plain())
				page.expect(t, tt.status, tt.want)
			}
			p.post("test", "id", "foreign").expect(t, http.StatusNotFound, "There is no entity with this ID")
			if diff := cmp.Diff([]string{"acme e1", "acme "}, tested); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTry: a person tries a URL before it's set. It's checked and probed like one that is set,
// and nothing changes, whatever comes of it. What was typed stays in the form.
func TestTry(t *testing.T) {
	const unreachable = "https://unreachable.example.com/"
	tests := map[string]struct {
		reason string
		err    error
		status int
		want   string
	}{
		"accepted":  {"", nil, 200, "Your server accepted the test. Nothing was changed"},
		"refused":   {"gone", nil, 200, "The test failed."},
		"too often": {"", waitError(9 * time.Second), 429, "Try again in 9 s."},
		"down":      {"", errBroken, 503, "We can't do this right now."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var tried []string
			f.portal.Try = func(_ context.Context, client, entity string, target egress.URL) (string, error) {
				tried = append(tried, client+" "+entity+" "+target.Reveal())
				return tt.reason, tt.err
			}
			f.handler.ProbeMode, f.handler.Prober = webhookcfg.ProbeEnforce, probes{}
			f.handler.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "foreign", nil }
			p := f.serve(t)
			p.signIn()
			for _, path := range []string{"", "all", "entity?id=e1"} {
				p.get(path).expect(t, http.StatusOK, "Try it")
			}
			for _, page := range []shown{p.post("try", "id", "e1", "url", hookURL), p.post("try-all", "url", hookURL, "confirm", "")} {
				page.expect(t, tt.status, `value="`+hookURL+`"`)
				page.text = html.UnescapeString(page.plain())
				page.expect(t, tt.status, tt.want)
			}
			p.post("try", "id", "foreign", "url", hookURL).expect(t, 404, "There is no entity with this ID")
			p.post("try", "id", "", "url", hookURL).expect(t, 400, "Type the ID of an entity")
			p.post("try", "url", hookURL).expect(t, 400, "Type the ID of an entity")
			p.post("try", "id", "e1", "url", "http://10.0.0.1/").expect(t, 400, "This URL isn&#39;t allowed", `value="http://10.0.0.1/"`)
			p.post("try-all", "url", unreachable).expect(t, 400, "The URL couldn&#39;t be reached", `value="`+unreachable+`"`)
			p.post("try-all", "url", hookURL, "client", "other").expect(t, 409, "another client")
			r := p.request("POST", "try-all", "url", hookURL)
			r.Header.Set("Origin", "https://evil.example.com")
			p.do(r).expect(t, 403, "another site")
			if diff := cmp.Diff([]string{"acme e1 " + hookURL, "acme  " + hookURL}, tried); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := f.resolved(t, "e1"); got != "none" {
				t.Errorf("it changed to %s", got)
			}
		})
	}
	p := newFixture(t).serve(t)
	p.signIn()
	p.get("").expect(t, 200, "!Try it")
	p.post("try-all", "url", hookURL).expect(t, 404, "There is no such page")
}

// TestReceiverHangs: a test of a receiver that never responds ends while there's time for the page
// that says so, and the log blames nobody.
func TestReceiverHangs(t *testing.T) {
	for _, path := range []string{"test", "try-all"} {
		f, _, _ := complete(t)
		records := f.record()
		f.handler.Timeout = 2 * time.Second
		hangs := func(ctx context.Context) (string, error) { <-ctx.Done(); return "unreachable", nil }
		f.portal.Test = func(ctx context.Context, _, _ string) (string, error) { return hangs(ctx) }
		f.portal.Try = func(ctx context.Context, _, _ string, _ egress.URL) (string, error) { return hangs(ctx) }
		p := f.serve(t)
		p.signIn()
		p.postRaw(path, filledIn(t, formFields(path)).Encode()).expect(t, http.StatusOK, "couldn&#39;t be reached")
		if strings.Contains(records.String(), "level=ERROR") {
			t.Errorf("%s: logged %s", path, records)
		}
	}
}
