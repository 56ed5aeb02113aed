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

// TestDeliveries: every state with every reason is in a response that matches the document.
func TestDeliveries(t *testing.T) {
	base, kin, bodies := serveDeliveries(t), newKinValidator(t, document(t)), ""
	for i := range len(deliveryStates) * len(deliveryReasons) {
		target := []string{configure, variant}[i%2] + "/e1"
		q := request{name: "read of a delivery", method: "GET", target: target, client: acme}
		if got := q.send(t, kin, base); got != "200" {
			t.Errorf("GET %s: %s", target, got)
		}
		if ex := kin.last(); ex.responseErr != nil {
			t.Errorf("%s violates the document: %v", ex.body, ex.responseErr)
		}
		bodies += kin.last().body
	}
	for word := range strings.FieldsSeq("ok failing stopped unreachable redirect throttled status gone refused expired last_success last_failure") {
		if !strings.Contains(bodies, `"`+word+`"`) {
			t.Errorf("no response had %q", word)
		}
	}
}
