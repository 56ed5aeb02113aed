package contract_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var (
	deliveryStates, reasonWords = webhookcfg.DeliveryWords()
	deliveryReasons             = append([]string{""}, reasonWords...)
)

// deliveries returns each state with each reason in turn, and then starts over.
type deliveries struct{ calls int }

func (d *deliveries) status(context.Context, string, string, webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	states, reasons := len(deliveryStates), len(deliveryReasons)
	status := webhookcfg.DeliveryStatus{
		State:       deliveryStates[d.calls%states],
		Reason:      deliveryReasons[d.calls/states%reasons],
		LastSuccess: noon.Add(time.Hour),
	}
	if status.State != "ok" {
		status.LastFailure = noon.Add(2 * time.Hour)
	}
	d.calls++
	return status, nil
}

// serveDeliveries serves a handler with a webhook for every entity of a client.
func serveDeliveries(t *testing.T) (base string) {
	t.Helper()
	st, o := store.NewMemory(), options()
	set := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/all"))
	set.Time = noon
	if err := st.Apply(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	o.DeliveryStatus = new(deliveries).status
	return serve(t, st, o)
}

// readDeliveries reads every state with every reason. It returns the bodies, and how many
// responses violate the document.
func readDeliveries(t *testing.T, kin *kinValidator) (bodies string, violations int) {
	t.Helper()
	base := serveDeliveries(t)
	for i := range len(deliveryStates) * len(deliveryReasons) {
		target := []string{configure, variant}[i%2] + "/e1"
		q := request{name: "read of a delivery", method: "GET", target: target, client: acme}
		if got := q.send(t, kin, base); got != "200" {
			t.Errorf("GET %s: %s", target, got)
		}
		bodies += kin.last().body
		if kin.last().responseErr != nil {
			violations++
		}
	}
	return bodies, violations
}

// TestDeliveries: every response with a delivery matches the document. The validator also
// finds violations of altered documents.
func TestDeliveries(t *testing.T) {
	validate := func(alterations ...string) (string, int) {
		return readDeliveries(t, newKinValidator(t, document(t, alterations...)))
	}
	bodies, violations := validate()
	if violations != 0 {
		t.Errorf("%d violations of the document", violations)
	}
	for word := range strings.FieldsSeq("ok failing stopped unreachable redirect throttled status gone refused expired last_success last_failure") {
		if !strings.Contains(bodies, `"`+word+`"`) {
			t.Errorf("no response had %q", word)
		}
	}
	for _, alteration := range [][]string{
		{"enum: [ok, failing, stopped]", "enum: [ok, failing]"},
		{"refused, expired]", "refused]"},
		{"        last_failure:\n", "        last_error:\n"},
		{"      required: [state]\n", "      required: [state, reason]\n"},
		{"        delivery:\n", "        deliveries:\n"},
	} {
		if _, violations := validate(alteration...); violations == 0 {
			t.Errorf("%q: no violation was found", alteration)
		}
	}
}
