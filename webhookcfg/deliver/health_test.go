package deliver_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// epoch is when the webhooks of the tests are set, unless a test has another time.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// base returns the base that acme set after a number of seconds.
func base(set float64) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: egress.NewURL("https://hooks.example.com" + secretPath), Source: webhookcfg.SourceBase, Since: epoch.Add(seconds(set))}
}

func newHealth(t testing.TB, st deliver.HealthStore, opts *deliver.HealthOptions) *deliver.Health {
	t.Helper()
	h, err := deliver.NewHealth(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// send is a call of Send for entity e1 of acme, with its result.
type send struct {
	set     float64 // when the webhook was set that Send resolved
	at      float64 // when it started
	outcome deliver.Outcome
	reason  deliver.Reason
}

// to makes the calls of Send.
func (s send) to(h *deliver.Health, hook webhookcfg.Webhook) {
	h.Stopped(context.Background(), "acme", "e1", hook)
	s.record(h, hook)
}

func (s send) record(h *deliver.Health, hook webhookcfg.Webhook) {
	r := deliver.Result{Outcome: s.outcome, Reason: s.reason, Webhook: hook}
	h.Record(context.Background(), "acme", "e1", r, epoch.Add(seconds(s.at)))
}

// describe returns what a client reads of a webhook, with the first failure, and whether Send
// sends nothing.
func describe(t testing.TB, h *deliver.Health, entity string, hook webhookcfg.Webhook) string {
	t.Helper()
	reason, stopped := h.Stopped(t.Context(), "acme", entity, hook)
	d, err := h.Status(t.Context(), "acme", entity, hook)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Load(t.Context(), "acme", entity, hook)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(cmp.Or(d.State, "unknown"))
	if d.Reason != "" {
		fmt.Fprintf(&b, " %s", d.Reason)
	}
	for _, field := range []struct {
		name string
		at   time.Time
	}{{"success", d.LastSuccess}, {"failure", d.LastFailure}, {"first", r.FirstFailure}} {
		if !field.at.IsZero() {
			fmt.Fprintf(&b, ", %s %v", field.name, field.at.Sub(epoch).Seconds())
		}
	}
	if stopped {
		fmt.Fprintf(&b, "; Send: %s", reason)
	}
	return b.String()
}

// TestHealth: what a series of results says of the webhook that is in effect in the end.
func TestHealth(t *testing.T) {
	const (
		ok, failed, never   = deliver.Delivered, deliver.Failed, deliver.Undeliverable
		unreachable, status = deliver.ReasonUnreachable, deliver.ReasonStatus
		day                 = 24 * 60 * 60.
	)
	tests := []struct {
		name string
		sent []send
		set  float64 // when the webhook in effect was set
		want string
	}{
		{"nothing", nil, 0, "unknown"},
		{"success", []send{{0, 10, ok, ""}}, 0, "ok, success 10"},
		{"failure", []send{{0, 10, failed, unreachable}}, 0, "failing unreachable, failure 10, first 10"},
		{"redirect", []send{{0, 10, failed, deliver.ReasonRedirect}}, 0, "failing redirect, failure 10, first 10"},
		{"throttled", []send{{0, 10, failed, deliver.ReasonThrottled}}, 0, "failing throttled, failure 10, first 10"},
		{"status", []send{{0, 10, failed, status}}, 0, "failing status, failure 10, first 10"},
		{"failures", []send{{0, 10, failed, status}, {0, 20, failed, unreachable}}, 0, "failing unreachable, failure 20, first 10"},
		{"recovery", []send{{0, 10, failed, status}, {0, 20, ok, ""}}, 0, "ok, success 20, failure 10"},
		{"relapse", []send{{0, 10, failed, status}, {0, 20, ok, ""}, {0, 30, failed, status}}, 0, "failing status, success 20, failure 30, first 30"},
		{"gone", []send{{0, 10, ok, ""}, {0, 20, never, deliver.ReasonGone}}, 0, "stopped gone, success 10, failure 20, first 20; Send: gone"},

		{"not an attempt: deferred", []send{{0, 10, deliver.Deferred, deliver.ReasonBusy}}, 0, "unknown"},
		{"not an attempt: unavailable", []send{{0, 10, deliver.Deferred, deliver.ReasonUnavailable}}, 0, "unknown"},
		{"not an attempt: stopped", []send{{0, 10, deliver.Undeliverable, deliver.ReasonStopped}}, 0, "unknown"},
		{"not an attempt: message", []send{{0, 10, never, deliver.ReasonMessage}}, 0, "unknown"},
		{"not an attempt: zero", []send{{0, 10, 0, ""}}, 0, "unknown"},

		{"refused", []send{{0, 10, never, deliver.ReasonPolicy}}, 0, "stopped refused, failure 10"},
		{"refused, then allowed", []send{{0, 10, never, deliver.ReasonPolicy}, {0, 20, ok, ""}}, 0, "ok, success 20, failure 10"},
		{"refused, then failed", []send{{0, 10, never, deliver.ReasonPolicy}, {0, 20, failed, status}}, 0, "failing status, failure 20, first 20"},
		{"refused time is no outage", []send{{0, 10, failed, status}, {0, 20, never, deliver.ReasonPolicy}, {0, 30, failed, status}}, 0, "failing status, failure 30, first 30"},
		{"refused after a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 20, never, deliver.ReasonPolicy}}, 0, "stopped gone, failure 10, first 10; Send: gone"},

		// The same URL, set again. A stopped one is on trial.
		{"set again later", []send{{0, 10, never, deliver.ReasonGone}}, 20, "stopped gone, failure 10, first 10"},
		{"set again in the next second", []send{{0, 10, never, deliver.ReasonGone}}, 1, "stopped gone, failure 10, first 10"},
		{"set again a microsecond later", []send{{0, 10, never, deliver.ReasonGone}}, 0.000001, "stopped gone, failure 10, first 10"},
		{"set again by a clock behind", []send{{0, 10, never, deliver.ReasonGone}}, -1, "stopped gone, failure 10, first 10"},
		{"failing again since it was set again", []send{{0, 10, never, deliver.ReasonGone}, {20, 30, failed, status}}, 20, "stopped gone, failure 30, first 10; Send: gone"},
		{"delivered since it was set again", []send{{0, 10, never, deliver.ReasonGone}, {20, 30, ok, ""}}, 20, "ok, success 30, failure 10"},
		{"failing since before it was set again", []send{{0, 10, failed, status}, {20, 30, failed, status}}, 20, "failing status, failure 30, first 10"},
		{"refused since it was set again", []send{{0, 10, never, deliver.ReasonGone}, {20, 30, never, deliver.ReasonPolicy}}, 20, "stopped gone, failure 10, first 10"},

		// The second in which it was set.
		{"410 in the second of the set", []send{{0.2, 0.9, never, deliver.ReasonGone}}, 0.2, "stopped gone, failure 0.9, first 0.9; Send: gone"},
		{"410 in it, then set again in it", []send{{0.2, 0.8, never, deliver.ReasonGone}}, 0.9, "stopped gone, failure 0.8, first 0.8"},
		{"410 in it, of what was set before in it", []send{{0.2, 0.8, ok, ""}, {0.3, 0.9, never, deliver.ReasonGone}}, 0.2, "stopped gone, success 0.8, failure 0.9, first 0.9"},

		// Skew: the clock that the webhook was set by is not the sender's.
		{"set by a clock ahead", []send{{100, 10, never, deliver.ReasonGone}}, 100, "stopped gone, failure 10, first 10; Send: gone"},
		{"set by a clock behind", []send{{-100, 0.5, never, deliver.ReasonGone}}, -100, "stopped gone, failure 0.5, first 0.5; Send: gone"},

		// Results that arrive late.
		{"late success", []send{{0, 20, failed, status}, {0, 10, ok, ""}}, 0, "failing status, success 10, failure 20, first 20"},
		{"late failure", []send{{0, 20, ok, ""}, {0, 10, failed, status}}, 0, "ok, success 20, failure 10"},
		{"late failure of a series", []send{{0, 20, failed, status}, {0, 10, failed, unreachable}}, 0, "failing status, failure 20, first 10"},
		{"late failure within a series", []send{{0, 10, failed, status}, {0, 50, failed, status}, {0, 40, failed, unreachable}}, 0, "failing status, failure 50, first 10"},
		{"late success in a series", []send{{0, 10, failed, status}, {0, 30, failed, status}, {0, 20, ok, ""}}, 0, "failing status, success 20, failure 30, first 30"},
		{"late failure after a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 12, failed, status}}, 0, "stopped gone, failure 10, first 10; Send: gone"},
		{"late 410", []send{{0, 12, failed, status}, {0, 10, never, deliver.ReasonGone}}, 0, "stopped gone, failure 10, first 10; Send: gone"},
		{"success under way at a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 3, ok, ""}}, 0, "stopped gone, success 3, failure 10, first 10; Send: gone"},
		{"success after a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 12, ok, ""}}, 0, "ok, success 12, failure 10"},
		{"success before a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 9, ok, ""}}, 0, "stopped gone, success 9, failure 10, first 10; Send: gone"},
		{"success in the second of a stop", []send{{0, 10.1, never, deliver.ReasonGone}, {0, 10.9, ok, ""}}, 0, "ok, success 10.9, failure 10.1"},
		{"success with the start of a stop", []send{{0, 10, never, deliver.ReasonGone}, {0, 10, ok, ""}}, 0, "stopped gone, success 10, failure 10, first 10; Send: gone"},
		{"two stops and a success between them", []send{{0, 10, never, deliver.ReasonGone}, {0, 14, never, deliver.ReasonGone}, {0, 12, ok, ""}}, 0, "stopped gone, success 12, failure 14, first 14; Send: gone"},

		// Expiry.
		{"just not expired", []send{{0, 10, failed, status}, {0, 2*day + 10, failed, status}, {0, 4*day + 10, failed, status}, {0, 5*day + 9, failed, status}}, 0, "failing status, failure 432009, first 10"},
		{"expired", []send{{0, 10, failed, status}, {0, 2*day + 10, failed, status}, {0, 4*day + 10, failed, status}, {0, 5*day + 10, failed, status}}, 0, "stopped expired, failure 432010, first 10; Send: expired"},
		{"a success in between", []send{{0, 10, failed, status}, {0, 2*day + 10, failed, status}, {0, 3 * day, ok, ""}, {0, 4*day + 10, failed, status}, {0, 5*day + 10, failed, status}}, 0, "failing status, success 259200, failure 432010, first 345610"},
		{"silence in between", []send{{0, 10, failed, status}, {0, 2.5*day + 11, failed, status}, {0, 5*day + 10, failed, status}}, 0, "failing status, failure 432010, first 216011"},
		{"as much silence as an outage may have", []send{{0, 10, failed, status}, {0, 2.5*day + 10, failed, status}, {0, 5*day + 10, failed, status}}, 0, "stopped expired, failure 432010, first 10; Send: expired"},
		{"two failures far apart", []send{{0, 10, failed, status}, {0, 30 * day, failed, status}}, 0, "failing status, failure 2.592e+06, first 2.592e+06"},
		{"expired, but set by a clock ahead", []send{{9 * day, 10, failed, status}, {9 * day, 2*day + 10, failed, status}, {9 * day, 4*day + 10, failed, status}, {9 * day, 5*day + 10, failed, status}}, 9 * day, "stopped expired, failure 432010, first 10; Send: expired"},
		{"expired, set again", []send{{0, 10, failed, status}, {0, 2*day + 10, failed, status}, {0, 4*day + 10, failed, status}, {0, 5*day + 10, failed, status}}, 5*day + 10, "stopped expired, failure 432010, first 10"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHealth(t, nil, nil)
			for _, s := range tt.sent {
				s.to(h, base(s.set))
			}
			if got := describe(t, h, "e1", base(tt.set)); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestHealthOtherURL: with another URL, nothing is known, and so it is with the same one after that, or
// without a Since.
func TestHealthOtherURL(t *testing.T) {
	h, other, unset := newHealth(t, nil, nil), base(20), base(0)
	other.URL = egress.NewURL("https://example.com/other")
	unset.Since = time.Time{}
	gone := send{at: 10, outcome: deliver.Undeliverable, reason: deliver.ReasonGone}
	gone.to(h, base(0))
	for name, hook := range map[string]webhookcfg.Webhook{"a read of another one": other, "a read without a Since": unset} {
		if d, err := h.Status(t.Context(), "acme", "e1", hook); d.State != "" || err != nil {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	for _, hook := range []webhookcfg.Webhook{other, base(30)} {
		if got := describe(t, h, "e1", hook); got != "unknown" {
			t.Errorf("set at %v: %s", hook.Since, got)
		}
	}
	gone.to(h, base(30))
	if got := describe(t, h, "e1", unset); got != "unknown" {
		t.Errorf("without a Since: %s", got)
	}
}

// TestHealthSetDuringAttempt: a failure is dropped if a later Send found that the client had set the
// webhook again, but a success isn't if that's the same URL.
func TestHealthSetDuringAttempt(t *testing.T) {
	for _, set := range []float64{20, -20, 0.000001} { // by the sender's clock, one behind, or at once
		h := newHealth(t, nil, nil)
		send{at: 15, outcome: deliver.Delivered}.to(h, base(0))
		send{at: 25, outcome: deliver.Delivered}.to(h, base(set))
		send{at: 1, outcome: deliver.Undeliverable, reason: deliver.ReasonGone}.record(h, base(0))
		if got := describe(t, h, "e1", base(set)); got != "ok, success 25" {
			t.Errorf("set at %v: %s", set, got)
		}
		send{at: 30, outcome: deliver.Delivered}.record(h, base(0))
		if got := describe(t, h, "e1", base(set)); got != "ok, success 30" {
			t.Errorf("set at %v, late success: %s", set, got)
		}
		other := base(0)
		other.URL = egress.NewURL("https://example.com/other")
		send{at: 40, outcome: deliver.Delivered}.record(h, other)
		if got := describe(t, h, "e1", base(set)); got != "ok, success 30" {
			t.Errorf("set at %v, late success of another URL: %s", set, got)
		}
	}
}

// TestHealthZeroSince: nothing distinguishes a webhook with the zero Since from what the
// client set before, so it is not stopped, but shown.
func TestHealthZeroSince(t *testing.T) {
	h, hook := newHealth(t, nil, &deliver.HealthOptions{StopAfter: time.Minute}), base(0)
	hook.Since = time.Time{}
	for at := range 100 {
		send{at: float64(at), outcome: deliver.Failed, reason: deliver.ReasonStatus}.to(h, hook)
	}
	if got := describe(t, h, "e1", hook); got != "failing status, failure 99, first 0" {
		t.Errorf("after failures: %s", got)
	}
	send{at: 100, outcome: deliver.Undeliverable, reason: deliver.ReasonGone}.to(h, hook)
	if got := describe(t, h, "e1", hook); got != "failing gone, failure 100, first 0" {
		t.Errorf("after 410: %s", got)
	}
}

// TestHealthScopes: entities with the base share a record, and an override has its own. What
// is neither has none.
func TestHealthScopes(t *testing.T) {
	h := newHealth(t, nil, nil)
	hook := func(source webhookcfg.Source) webhookcfg.Webhook {
		w := base(0)
		w.Source = source
		return w
	}
	record := func(client, entity string, source webhookcfg.Source) {
		h.Record(t.Context(), client, entity, deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonGone, Webhook: hook(source)}, epoch.Add(time.Minute))
	}
	record("acme", "e1", webhookcfg.SourceBase)
	record("acme", "e3", webhookcfg.SourceOverride)
	record("acme", "e4", webhookcfg.SourceOff)
	record("acme", "e5", webhookcfg.SourceNone)
	record("", "e1", webhookcfg.SourceBase)
	for _, tt := range []struct {
		client, entity string
		source         webhookcfg.Source
		stopped        bool
	}{
		{"acme", "e1", webhookcfg.SourceBase, true},
		{"acme", "e2", webhookcfg.SourceBase, true},
		{"acme", "e1", webhookcfg.SourceOverride, false},
		{"acme", "e3", webhookcfg.SourceOverride, true},
		{"acme", "e4", webhookcfg.SourceOff, false},
		{"acme", "e4", webhookcfg.SourceOverride, false},
		{"acme", "e5", webhookcfg.SourceNone, false},
		{"acme", "all", webhookcfg.SourceOverride, false},
		{"other", "e1", webhookcfg.SourceBase, false},
		{"other", "e3", webhookcfg.SourceOverride, false},
	} {
		_, stopped := h.Stopped(t.Context(), tt.client, tt.entity, hook(tt.source))
		d, err := h.Status(t.Context(), tt.client, tt.entity, hook(tt.source))
		if stopped != tt.stopped || (d.State == "stopped") != tt.stopped || err != nil {
			t.Errorf("%s %s %v: stopped %v, shown as %q, error %v", tt.client, tt.entity, tt.source, stopped, d.State, err)
		}
	}
}

// TestHealthReadsChangeNothing: the reads of a client, also of a copy that is behind, neither
// replace a record nor make one; nor does a result that says nothing of a receiver.
func TestHealthReadsChangeNothing(t *testing.T) {
	h := newHealth(t, nil, &deliver.HealthOptions{MaxWebhooks: 1})
	send{at: 10, outcome: deliver.Undeliverable, reason: deliver.ReasonGone}.to(h, base(0))
	override := base(0)
	override.Source = webhookcfg.SourceOverride
	other := base(5)
	other.URL = egress.NewURL("https://example.com/other")
	for _, hook := range []webhookcfg.Webhook{other, override} {
		if d, err := h.Status(t.Context(), "acme", "e2", hook); d != (webhookcfg.DeliveryStatus{}) || err != nil {
			t.Errorf("%v: %+v, %v", hook.Source, d, err)
		}
	}
	for _, hook := range []webhookcfg.Webhook{base(-5), base(5)} { // the same URL
		if d, err := h.Status(t.Context(), "acme", "e2", hook); d.State != "stopped" || err != nil {
			t.Errorf("set at %v: %+v, %v", hook.Since, d, err)
		}
	}
	h.Record(t.Context(), "acme", "e2", deliver.Result{Outcome: deliver.Deferred, Webhook: override}, epoch)
	if reason, stopped := h.Stopped(t.Context(), "acme", "e1", base(0)); !stopped || reason != deliver.ReasonGone {
		t.Errorf("%v, %q", stopped, reason)
	}
}

// TestHealthMemory: of more webhooks than fit, those used last are known.
func TestHealthMemory(t *testing.T) {
	h := newHealth(t, nil, &deliver.HealthOptions{MaxWebhooks: 3})
	hook := base(0)
	hook.Source = webhookcfg.SourceOverride
	for i := range 10 {
		h.Record(t.Context(), "acme", fmt.Sprint("e", i), deliver.Result{Outcome: deliver.Delivered, Webhook: hook}, epoch)
	}
	var known []int
	for i := range 10 {
		if d, err := h.Status(t.Context(), "acme", fmt.Sprint("e", i), hook); err != nil {
			t.Error(err)
		} else if d.State == "ok" {
			known = append(known, i)
		}
	}
	if !slices.Equal(known, []int{7, 8, 9}) {
		t.Errorf("known are %d", known)
	}
}

func TestHealthOptions(t *testing.T) {
	for _, o := range []deliver.HealthOptions{{MaxWebhooks: -1}, {StopAfter: -1}} {
		if _, err := deliver.NewHealth(nil, &o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	h := newHealth(t, nil, &deliver.HealthOptions{StopAfter: time.Hour})
	for _, at := range []float64{10, 1800, 3000, 3610} {
		send{at: at, outcome: deliver.Failed, reason: deliver.ReasonStatus}.to(h, base(0))
	}
	if got, want := describe(t, h, "e1", base(0)), "stopped expired, failure 3610, first 10; Send: expired"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestHealthIsSharedFairly: however many webhooks another client has, and however many of its
// messages wait, it does not make the Health forget a stop. Of what is unknown, nothing is kept.
func TestHealthIsSharedFairly(t *testing.T) {
	for name, st := range map[string]deliver.HealthStore{"memory": nil, "store": noRecords{}} {
		h := newHealth(t, st, &deliver.HealthOptions{MaxWebhooks: 100})
		send{outcome: deliver.Undeliverable, reason: deliver.ReasonGone}.to(h, base(0))
		for i := range 300 {
			entity, hook := fmt.Sprint("e", i), base(0)
			hook.Source = webhookcfg.SourceOverride
			h.Stopped(t.Context(), "other", entity, hook)
			if i%2 == 0 {
				h.Record(t.Context(), "other", entity, deliver.Result{Outcome: deliver.Failed, Reason: deliver.ReasonStatus, Webhook: hook}, epoch)
			}
		}
		if _, stopped := h.Stopped(t.Context(), "acme", "e1", base(0)); !stopped {
			t.Errorf("%s: the stop was forgotten", name)
		}
	}
	h := newHealth(t, nil, nil)
	h.Stopped(t.Context(), "acme", "e1", base(0))
	if n := h.Len(); n != 0 {
		t.Errorf("%d records of a webhook that was not called", n)
	}
}

// noRecords is a HealthStore that loses everything.
type noRecords struct{}

func (noRecords) LoadDelivery(context.Context, string, webhookcfg.Scope) (deliver.Record, error) {
	return deliver.Record{}, nil
}

func (noRecords) SaveDelivery(context.Context, string, webhookcfg.Scope, deliver.Record) error {
	return nil
}

// TestHealthLogsStops: a stop is logged once, without the URL.
func TestHealthLogsStops(t *testing.T) {
	var records bytes.Buffer
	h := newHealth(t, nil, &deliver.HealthOptions{Logger: slog.New(slog.NewTextHandler(&records, nil))})
	for i, s := range []send{
		{outcome: deliver.Delivered},
		{outcome: deliver.Failed, reason: deliver.ReasonStatus},
		{outcome: deliver.Undeliverable, reason: deliver.ReasonGone},
		{outcome: deliver.Undeliverable, reason: deliver.ReasonGone},
		{outcome: deliver.Failed, reason: deliver.ReasonStatus},
	} {
		s.at = float64(10 + i)
		s.to(h, base(0))
	}
	const want = `msg="deliveries to a webhook stopped" client=acme scope=all reason=gone`
	if text := records.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) || strings.Contains(text, "t0ken") {
		t.Errorf("logged %s", text)
	}
}

// model is a trivial Health of one webhook: it keeps every result, in the order of arrival.
type model struct{ results []send }

// state returns what describe returns, if the results arrived in the order of their times.
func (m model) state(stopAfter float64) string {
	state, success, failure, first := "unknown", -1., -1., -1.
	for _, r := range m.results {
		switch {
		case strings.HasPrefix(state, "stopped gone"), strings.HasPrefix(state, "stopped expired"):
			switch {
			case r.outcome == deliver.Delivered:
				state, success, first = "ok", r.at, -1
			case r.reason == deliver.ReasonGone:
				state, failure, first = "stopped gone", r.at, r.at
			}
		case r.outcome == deliver.Delivered:
			state, success, first = "ok", r.at, -1
		case r.reason == deliver.ReasonGone:
			state, failure, first = "stopped gone", r.at, r.at
		case r.reason == deliver.ReasonPolicy:
			state, failure, first = "stopped refused", r.at, -1
		default:
			if first < 0 || r.at-failure > stopAfter/2 {
				first = r.at
			}
			state, failure = "failing "+string(r.reason), r.at
			if failure-first >= stopAfter {
				state = "stopped expired"
			}
		}
	}
	var text strings.Builder
	text.WriteString(state)
	for i, at := range []float64{success, failure, first} {
		if at >= 0 {
			fmt.Fprintf(&text, ", %s %v", []string{"success", "failure", "first"}[i], at)
		}
	}
	if word, ok := strings.CutPrefix(state, "stopped "); ok && word != "refused" {
		text.WriteString("; Send: " + word)
	}
	return text.String()
}

func randomResult(random *rand.Rand, at float64) send {
	s := send{at: at}
	switch n := random.IntN(40); {
	case n < 8:
		s.outcome = deliver.Delivered
	case n < 10:
		s.outcome, s.reason = deliver.Undeliverable, deliver.ReasonGone
	case n < 12:
		s.outcome, s.reason = deliver.Undeliverable, deliver.ReasonPolicy
	default:
		s.outcome, s.reason = deliver.Failed, []deliver.Reason{deliver.ReasonRedirect, deliver.ReasonStatus, deliver.ReasonThrottled}[n%3]
	}
	return s
}

// TestHealthModel compares random histories with the model, after each result.
func TestHealthModel(t *testing.T) {
	const stopAfter = 100
	states := map[string]int{}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 17))
		h := newHealth(t, nil, &deliver.HealthOptions{StopAfter: stopAfter * time.Second})
		var m model
		for at := 10.; at < 2000; at += float64(1 + random.IntN(60)) {
			r := randomResult(random, at)
			if random.IntN(4) > 0 && r.outcome != deliver.Failed { // so that series last
				r.outcome, r.reason = deliver.Failed, deliver.ReasonStatus
			}
			m.results = append(m.results, r)
			r.to(h, base(0))
			got, want := describe(t, h, "e1", base(0)), m.state(stopAfter)
			if got != want {
				t.Fatalf("seed %d, %+v:\n got %s\nwant %s", seed, m.results, got, want)
			}
			word, _, _ := strings.Cut(got, ",")
			states[word]++
		}
	}
	for _, state := range []string{"ok", "failing status", "failing redirect", "failing throttled", "stopped gone", "stopped refused", "stopped expired"} {
		if states[state] < 100 {
			t.Errorf("only %d times %s: %v", states[state], state, states)
		}
	}
}

// TestHealthConcurrency: results of many webhooks arrive concurrently and in any order. In
// the end each webhook is stopped exactly if a 410 came after every success.
func TestHealthConcurrency(t *testing.T) {
	const webhooks, results, workers = 40, 30, 8
	type numbered struct {
		webhook int
		send
	}
	random := rand.New(rand.NewPCG(17, 4))
	var all []numbered
	models := make([]model, webhooks)
	for webhook := range webhooks {
		for i := range results {
			r := randomResult(random, float64(10+i))
			models[webhook].results = append(models[webhook].results, r)
			all = append(all, numbered{webhook, r})
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	h, hook := newHealth(t, nil, nil), base(0)
	hook.Source = webhookcfg.SourceOverride
	entity := func(webhook int) string { return fmt.Sprint("e", webhook) }
	var running sync.WaitGroup
	for part := range slices.Chunk(all, (len(all)+workers-1)/workers) {
		running.Go(func() {
			for _, r := range part {
				result := deliver.Result{Outcome: r.outcome, Reason: r.reason, Webhook: hook}
				h.Stopped(t.Context(), "acme", entity(r.webhook), hook)
				h.Record(t.Context(), "acme", entity(r.webhook), result, epoch.Add(seconds(r.at)))
				if _, err := h.Status(t.Context(), "acme", entity(r.webhook), hook); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for webhook, m := range models {
		success, gone := -1., -1.
		for _, r := range m.results {
			switch {
			case r.outcome == deliver.Delivered:
				success = r.at
			case r.reason == deliver.ReasonGone:
				gone = r.at
			}
		}
		d, err := h.Status(t.Context(), "acme", entity(webhook), hook)
		if err != nil {
			t.Fatal(err)
		}
		_, stopped := h.Stopped(t.Context(), "acme", entity(webhook), hook)
		want := time.Time{}
		if success >= 0 {
			want = epoch.Add(seconds(success))
		}
		if stopped != (gone > success) || !d.LastSuccess.Equal(want) {
			t.Errorf("%s: stopped %v with success at %v and 410 at %v: %+v", entity(webhook), stopped, success, gone, d)
		}
	}
}
