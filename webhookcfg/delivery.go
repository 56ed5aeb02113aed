package webhookcfg

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// DeliveryStatus is how the deliveries to a webhook go. With [Options.DeliveryStatus],
// clients read it together with the webhook. When a client sets another URL, the status starts
// over. It never changes the configuration: a stopped webhook is still in effect.
type DeliveryStatus struct {
	// State is "ok" if the last delivery succeeded. It's "failing" if that failed: the next
	// attempt comes with the next notification at the latest, or after the pause. It's "stopped"
	// if nothing is delivered. That ends when the client sets another URL, or the same one again
	// and it works, or when a test arrives; with the reason "refused", when the policy allows the
	// URL. With "", clients see no status.
	State string

	// Reason is why the State is "failing" or "stopped": "unreachable", "redirect",
	// "throttled", "status", "gone", "refused" or "expired". Clients can't see more of a
	// receiver's responses, or they could scan networks that they can't reach themselves.
	Reason string

	// LastSuccess is when the last successful attempt started, and LastFailure when the last
	// failed one did. Zero means never. If these were the ends of the attempts, clients could
	// tell a refused port from a filtered one.
	LastSuccess, LastFailure time.Time

	// PausedUntil is the end of the pause while deliveries to a failing webhook pause, and zero
	// otherwise.
	PausedUntil time.Time
}

// DeliveryWords returns the States and Reasons that a [DeliveryStatus] can have, without "".
// Use it to check that you have a text for each.
func DeliveryWords() (states, reasons []string) {
	return slices.Clone(deliveryStates), slices.Clone(deliveryReasons)
}

// The words of the wire contract. If you add one, tests say where it needs a text.
var (
	deliveryStates  = []string{"ok", "failing", "stopped"}
	deliveryReasons = []string{"unreachable", "redirect", "throttled", "status", "gone", "refused", "expired"}
)

// delivery returns how the deliveries to hook go. The State is "" if nothing is known. hook
// must be the webhook in effect.
func (o *operation) delivery(ctx context.Context, entity string, hook Webhook) (DeliveryStatus, *apiError) {
	if o.h.options.DeliveryStatus == nil || hook.URL.IsZero() {
		return DeliveryStatus{}, nil
	}
	o.url = hook.URL // an error or a panic may quote it
	d, err := o.h.options.DeliveryStatus(ctx, o.event.Client, entity, hook)
	switch {
	case err != nil:
		return DeliveryStatus{}, unavailable(fmt.Errorf("DeliveryStatus: %w", err))
	case d.State != "" && !slices.Contains(deliveryStates, d.State), d.Reason != "" && !slices.Contains(deliveryReasons, d.Reason):
		return DeliveryStatus{}, serverError(fmt.Errorf("DeliveryStatus returned an unknown state %q or reason %q: see DeliveryWords", d.State, d.Reason))
	case d.State == "":
		return DeliveryStatus{}, nil
	}
	return d, nil
}

// DeliveryStatus returns how the deliveries to a webhook of a client go, as
// [Options.DeliveryStatus] says. The hook must be in effect for the entity, as from
// [Handler.Read]. For a base, pass an empty entity. The State is "" if nothing is known, or
// without that option.
//
// It's a part of a read, so you only get an event and a log record if it fails, with the
// operation "read". For the error, see [Handler.Set].
func (h *Handler) DeliveryStatus(ctx context.Context, client, entity string, hook Webhook) (status DeliveryStatus, err error) {
	o := h.newOperation(opRead)
	o.failuresOnly = true
	err = o.callFor(ctx, client, func(ctx context.Context) (e *apiError) {
		if o.event.Scope = Entity(entity); entity == "" {
			o.event.Scope = All()
		}
		status, e = o.delivery(ctx, entity, hook)
		return e
	})
	return status, err
}
