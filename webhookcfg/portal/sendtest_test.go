package portal_test

import (
	"context"
	"html"
	"math"
	"net/http"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
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
			for _, page := range []shown{p.post("test", "id", "e1"), p.post("test")} {
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
