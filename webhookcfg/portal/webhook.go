package portal

import (
	"cmp"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// hookView is a webhook as the pages show it.
type hookView struct {
	webhookcfg.Webhook
	State, Reason            string // keys of texts; State is "" if no deliveries are shown
	LastSuccess, LastFailure time.Time
	IsShown                  bool // with its path and query
}

// readWebhook returns the webhook in effect for an entity, or the base if the identifier is "".
func readWebhook(v *visit, id string) (webhookcfg.Webhook, error) {
	if id != "" {
		return v.handler.Read(v.ctx, v.Client, id)
	}
	page, err := v.handler.List(v.ctx, v.Client, "", 1)
	return page.Base, err
}

// readDeliveries returns a webhook as the pages show it, with its deliveries. If their state can't be
// found out once, the page doesn't wait for it again.
func readDeliveries(v *visit, entity string, hook webhookcfg.Webhook) hookView {
	shown := hookView{Webhook: hook, IsShown: v.query.Has("show")}
	if v.Parent.DeliveryStatus == nil || hook.URL.IsZero() {
		return shown
	}
	var d webhookcfg.DeliveryStatus
	if !v.isUnknown {
		var err error
		d, err = v.handler.DeliveryStatus(v.ctx, v.Client, entity, hook)
		v.isUnknown = err != nil
	}
	if v.isUnknown {
		shown.State = "unknown"
		return shown
	}
	shown.State, shown.Reason = cmp.Or(d.State, "none"), d.Reason
	shown.LastSuccess, shown.LastFailure = d.LastSuccess, d.LastFailure
	return shown
}
