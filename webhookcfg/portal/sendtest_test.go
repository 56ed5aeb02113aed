package portal_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
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
		"late":      {"", fmt.Errorf("test: %w", &egress.UnreachableError{Reason: egress.ReasonTimeout}), 200, "Your server didn't respond within the time that a test has"},
		"no name":   {"", &egress.UnreachableError{Reason: egress.ReasonDNS}, 503, "We can't do this right now."},
		"down":      {"", errBroken, 503, "We can't do this right now."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var tested []string
			f.portal.Test = func(_ context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
				tested = append(tested, fmt.Sprintf("%s %q %s %v", client, entity, hook.URL.Reveal(), hook.Since.Equal(hooktest.SetAll("", 1).Time)))
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
			if diff := cmp.Diff([]string{`acme "e1" ` + hooktest.URL(2).Reveal() + " false", `acme "" ` + hooktest.URL(1).Reveal() + " true"}, tested); diff != "" {
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
		"late":      {"", fmt.Errorf("test: %w", &egress.UnreachableError{Reason: egress.ReasonTimeout}), 200, "Your server didn't respond within the time that a test has"},
		"no name":   {"", &egress.UnreachableError{Reason: egress.ReasonDNS}, 503, "We can't do this right now."},
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
			p.post("try-all", "url", unreachable).expect(t, 400, "Your server couldn&#39;t be reached at this URL", `value="`+unreachable+`"`)
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
		synctest.Test(t, func(t *testing.T) {
			f, _, _ := complete(t)
			records := f.record()
			f.handler.Timeout = 2 * time.Second
			hangs := func(ctx context.Context) (string, error) { <-ctx.Done(); return "unreachable", nil }
			f.portal.Test = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (string, error) { return hangs(ctx) }
			f.portal.Try = func(ctx context.Context, _, _ string, _ egress.URL) (string, error) { return hangs(ctx) }
			p := f.serveOn(t, hooktest.NewNetwork())
			p.signIn()
			p.postRaw(path, filledIn(t, formFields(path)).Encode()).expect(t, http.StatusOK, "couldn&#39;t be reached, or sent no valid response in time")
			if strings.Contains(records.String(), "level=ERROR") {
				t.Errorf("%s: logged %s", path, records)
			}
		})
	}
}

// TestSlowReceiver: a receiver that takes longer than a test can, but not longer than a delivery, has
// not failed. The page doesn't say that it has, nothing comes of it, and the log blames nobody.
func TestSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = "http://hooks.example.com/in/t0ken"
		f := newFixture(t).hosted()
		records := f.record()
		f.handler.Policy = &egress.Policy{AllowHTTP: true, Resolver: oneAddress{}, Dial: dialSlow(9 * time.Second)}
		health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
			OnChange: func(_ context.Context, _ string, _ webhookcfg.Scope, before, after webhookcfg.DeliveryStatus) {
				t.Errorf("from %+v to %+v", before, after)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := deliver.DerivedKeys([]byte(strings.Repeat("k", 32)))
		if err != nil {
			t.Fatal(err)
		}
		sender, err := deliver.New(f.store, keys, &deliver.Options{Policy: f.handler.Policy, Health: health})
		if err != nil {
			t.Fatal(err)
		}
		hooktest.Apply(t, f.store, hooktest.At(1, webhookcfg.SetChange(acme, webhookcfg.All(), egress.NewURL(slow))))
		f.portal.Test, f.portal.Try = sender.Tester(deliver.Message{}), sender.Trier(deliver.Message{})
		f.handler.DeliveryStatus = health.Status
		pages := f.new(t)
		send := func() {
			if r := sender.Send(t.Context(), acme, "e1", deliver.Message{ID: "msg_1"}); r.Err != nil {
				t.Errorf("a delivery: %v", r.Err)
			}
		}
		send()
		for _, path := range []string{"test-all", "try-all"} {
			values := filledIn(t, formFields(path))
			if values.Has("url") {
				values.Set("url", slow+"/new")
			}
			r := httptest.NewRequest(http.MethodPost, "/?page="+path, strings.NewReader(values.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(&http.Cookie{Name: "session", Value: "ann"})
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, r)
			page := shown{status: w.Code, at: path, text: html.UnescapeString(w.Body.String())}
			page.expect(t, http.StatusOK, "Your server didn't respond within the time that a test has", "Notifications wait longer", "!couldn't be reached", "!The test failed", "Delivered")
			time.Sleep(10 * time.Second) // tests of a receiver are that far apart
		}
		send()
		if strings.Contains(records.String(), "level=ERROR") {
			t.Errorf("logged %s", records)
		}
		sender.CloseIdleConnections()
		time.Sleep(10 * time.Second) // the receiver notices that its connections are closed
	})
}

// oneAddress is a resolver that knows the same address for every name.
type oneAddress struct{}

func (oneAddress) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// dialSlow connects to a receiver in memory that takes a time for each request.
func dialSlow(takes time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		sender, receiver := net.Pipe()
		go func() {
			defer func() { _ = receiver.Close() }()
			reader := bufio.NewReader(receiver)
			for {
				r, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(takes)
				_, _ = io.WriteString(receiver, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}()
		return sender, nil
	}
}
