package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

type deliveries func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.Delivery, error)

func (d deliveries) Delivery(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.Delivery, error) {
	return d(ctx, client, entity, hook)
}

// deliveryReader reads e1, which has hookURL, where Deliveries returns d.
func deliveryReader(t *testing.T, d *webhookcfg.Delivery) (read func(path string) *httptest.ResponseRecorder) {
	t.Helper()
	o := options()
	o.Deliveries = deliveries(func(context.Context, string, string, webhookcfg.Webhook) (webhookcfg.Delivery, error) { return *d, nil })
	h := newHandler(t, newRecorder(), o)
	if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), hookURL); err != nil {
		t.Fatal(err)
	}
	return func(path string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", path+"/e1", nil), httptest.NewRecorder()
		r.SetBasicAuth("acme", "s3cret")
		h.ServeHTTP(w, r)
		return w
	}
}

// TestReadDelivery: a read shows the state of the webhook as it was set, and no other.
func TestReadDelivery(t *testing.T) {
	at := func(seconds float64) time.Time {
		return noon.Add(time.Duration(seconds * float64(time.Second))).In(time.FixedZone("", 3600))
	}
	tests := []struct {
		name     string
		delivery webhookcfg.Delivery
		want     string
	}{
		{"nothing", webhookcfg.Delivery{}, ""},
		{"unknown state", webhookcfg.Delivery{Since: noon, Reason: webhookcfg.ReasonGone, LastFailure: at(1)}, ""},
		{"state alone", webhookcfg.Delivery{Since: noon, State: webhookcfg.DeliveryOK}, `{"state":"ok"}`},
		{
			"success",
			webhookcfg.Delivery{Since: noon, State: webhookcfg.DeliveryOK, LastSuccess: at(1.9)},
			`{"state":"ok","last_success":"2026-01-02T03:04:06Z"}`,
		},
		{
			"failures",
			webhookcfg.Delivery{Since: noon, State: webhookcfg.DeliveryFailing, Reason: webhookcfg.ReasonUnreachable, LastSuccess: at(1), FirstFailure: at(2), LastFailure: at(3)},
			`{"state":"failing","reason":"unreachable","last_success":"2026-01-02T03:04:06Z","last_failure":"2026-01-02T03:04:08Z"}`,
		},
		{
			"stop",
			webhookcfg.Delivery{Since: noon, State: webhookcfg.DeliveryStopped, Reason: webhookcfg.ReasonGone, LastFailure: at(3)},
			`{"state":"stopped","reason":"gone","last_failure":"2026-01-02T03:04:08Z"}`,
		},
		{"same second", webhookcfg.Delivery{Since: at(0.999), State: webhookcfg.DeliveryOK}, `{"state":"ok"}`},
		{"set again", webhookcfg.Delivery{Since: at(-0.001), State: webhookcfg.DeliveryStopped, Reason: webhookcfg.ReasonGone}, ""},
		{"set again by a clock behind", webhookcfg.Delivery{Since: at(1), State: webhookcfg.DeliveryStopped, Reason: webhookcfg.ReasonGone}, ""},
		{"since nothing", webhookcfg.Delivery{State: webhookcfg.DeliveryStopped, Reason: webhookcfg.ReasonGone}, ""},
	}
	for _, tt := range tests {
		for path, key := range map[string]string{configure: "endpoint_id", variant: "moc_id"} {
			want := strings.TrimSuffix(shown(key, "e1", hookURL, "override"), "}")
			if tt.want != "" {
				want += `,"delivery":` + tt.want
			}
			if got := deliveryReader(t, &tt.delivery)(path).Body.String(); got != want+"}" {
				t.Errorf("%s:\n got %s\nwant %s}", tt.name, got, want)
			}
		}
	}
}

// TestDeliveriesCalls: Deliveries is called only in the read of one entity, and only with a
// URL in effect.
func TestDeliveriesCalls(t *testing.T) {
	var calls []string
	o := options()
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "e9", nil } // so that unsets resolve too
	o.Deliveries = deliveries(func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.Delivery, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the call has no deadline")
		}
		calls = append(calls, fmt.Sprintf("%s %s %s %s %s", client, entity, hook.URL.Reveal(), hook.Source, hook.Since.UTC().Format(time.RFC3339)))
		return webhookcfg.Delivery{Since: hook.Since, State: webhookcfg.DeliveryOK}, nil
	})
	address := serve(t, newHandler(t, newRecorder(), o))
	ok := func(response string) string { return strings.TrimSuffix(response, "}") + `,"delivery":{"state":"ok"}}` }
	got := steps(t, address, "get e1", "set e1 "+hookURL, "get e1", "set "+hookURL, "moc get e2", "unset e2", "get e2", "other get e2", "get e9", "unset e9")
	want := []string{
		shown("endpoint_id", "e1", "", "none"), successBody, ok(shown("endpoint_id", "e1", hookURL, "override")),
		successBody, ok(shown("moc_id", "e2", hookURL, "base")), successBody, shown("endpoint_id", "e2", "", "off"),
		shown("endpoint_id", "e2", "", "none"), "404 unknown_entity", "404 unknown_entity",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	steps(t, address, "set e3 "+hookURL, "list", "unset e3", "unset")
	const since = "2026-01-02T03:04:05Z"
	if diff := cmp.Diff([]string{"acme e1 " + hookURL + " override " + since, "acme e2 " + hookURL + " base " + since}, calls); diff != "" {
		t.Errorf("calls: -want +got:\n%s", diff)
	}
}

// TestDeliveryWords: whatever Deliveries returns, a response has only words that the
// interface lists, and any other value is a defect.
func TestDeliveryWords(t *testing.T) {
	states, reasons := openAPIWords(t, "state"), openAPIWords(t, "reason")
	known := regexp.MustCompile(`,"delivery":\{"state":"(` + strings.Join(states, "|") + `)"(,"reason":"(` + strings.Join(reasons, "|") + `)")?\}\}$`)
	var d webhookcfg.Delivery
	read := deliveryReader(t, &d)
	for state := range math.MaxUint8 + 1 {
		for reason := range math.MaxUint8 + 1 {
			if state > 10 && reason > 10 {
				continue // neither is known, like those before
			}
			d = webhookcfg.Delivery{Since: noon, State: webhookcfg.DeliveryState(state), Reason: webhookcfg.DeliveryReason(reason)}
			w := read(configure)
			switch valid := state <= len(states) && reason <= len(reasons); {
			case valid && state == 0:
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "delivery") {
					t.Errorf("%d, %d: got %d %s", state, reason, w.Code, w.Body)
				}
			case valid:
				if w.Code != http.StatusOK || !known.MatchString(w.Body.String()) {
					t.Errorf("%d, %d: got %d %s", state, reason, w.Code, w.Body)
				}
			case w.Code != http.StatusInternalServerError || errorCode(w.Body.String()) != "server_error":
				t.Errorf("%d, %d: got %d %s", state, reason, w.Code, w.Body)
			}
		}
	}
}

// openAPIWords returns the values that the document lists for a field of Delivery.
func openAPIWords(t *testing.T, field string) []string {
	t.Helper()
	_, schema, _ := strings.Cut(openAPI(t, options()), "\n    Delivery:\n")
	_, property, _ := strings.Cut(schema, "\n        "+field+":\n")
	_, enum, _ := strings.Cut(property, "\n          enum: [")
	words, _, found := strings.Cut(enum, "]\n")
	if !found {
		t.Fatalf("the document has no values of %s", field)
	}
	return strings.Split(words, ", ")
}

// TestDeliveryStrings: the words of the values are those of the document, in its order.
func TestDeliveryStrings(t *testing.T) {
	var states, reasons []string
	for s := webhookcfg.DeliveryOK; s <= webhookcfg.DeliveryStopped; s++ {
		states = append(states, s.String())
	}
	for r := webhookcfg.ReasonUnreachable; r <= webhookcfg.ReasonExpired; r++ {
		reasons = append(reasons, r.String())
	}
	if diff := cmp.Diff([][]string{openAPIWords(t, "state"), openAPIWords(t, "reason")}, [][]string{states, reasons}); diff != "" {
		t.Errorf("-document +values:\n%s", diff)
	}
	got := []string{
		webhookcfg.DeliveryUnknown.String(), webhookcfg.DeliveryState(4).String(), webhookcfg.DeliveryState(255).String(),
		webhookcfg.DeliveryReason(0).String(), webhookcfg.DeliveryReason(8).String(), webhookcfg.DeliveryReason(255).String(),
	}
	want := []string{"", "DeliveryState(4)", "DeliveryState(255)", "", "DeliveryReason(8)", "DeliveryReason(255)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSecretInDeliveries: an error or a panic of Deliveries, which receives the URL, may quote
// it; no response, event or record does.
func TestSecretInDeliveries(t *testing.T) {
	for name, fault := range map[string]func(webhookcfg.Webhook) error{
		"error":     func(hook webhookcfg.Webhook) error { return errors.New("quoted: " + hook.URL.Reveal()) },
		"panic":     func(hook webhookcfg.Webhook) error { panic("quoted: " + hook.URL.Reveal()) },
		"path only": func(webhookcfg.Webhook) error { return errors.New("quoted: " + secretPath) },
	} {
		var out bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&out, nil))
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) { fmt.Fprintf(&out, "%+v %v\n", e, e.Err) }
		o.Deliveries = deliveries(func(_ context.Context, _, _ string, hook webhookcfg.Webhook) (webhookcfg.Delivery, error) {
			return webhookcfg.Delivery{}, fault(hook)
		})
		h := newHandler(t, newRecorder(), o)
		if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), secretURL); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, readRequest())
		fmt.Fprintln(&out, w.Body)
		if text := out.String(); leaks(text) || !strings.Contains(text, "quoted: ") {
			t.Errorf("%s: status %d: %s", name, w.Code, text)
		}
	}
}
