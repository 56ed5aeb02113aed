package portal

import (
	"cmp"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

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
	if d.State == "failing" && d.PausedUntil.After(time.Now()) {
		shown.PausedUntil = d.PausedUntil
	}
	return shown
}

// deliveriesTexts are the words for how deliveries go, why, and what the client can do.
var deliveriesTexts = map[string]string{
	"deliveries":         "Deliveries",
	"never":              "never",
	"success":            "Last success:",
	"failure":            "Last failure:",
	"state.ok":           "Delivered",
	"state.failing":      "Failing",
	"state.stopped":      "Stopped",
	"state.none":         "No deliveries known",
	"state.unknown":      "Not known right now",
	"remedy.failing":     "Check your server. We try again, with the next notification at the latest.",
	"remedy.paused":      "Paused until %s, because your server failed several times in a row, or asked us to wait. Check your server. After that, we try again, with the next notification at the latest.",
	"remedy.stopped":     "Nothing is sent now. Repair your server, then set the webhook again: another URL, or the same one, which we then try once. For the default, that drops the webhooks that entities have of their own.",
	"remedy.test":        "Nothing is sent now. Repair your server, then send a test.",
	"remedy.refused":     "Nothing is sent to this address. Set another URL, or ask us why.",
	"reason.unreachable": "Your server couldn't be reached, or sent no valid response in time.",
	"reason.redirect":    "Your server redirected us. Redirects aren't followed.",
	"reason.throttled":   "Your server asked us to slow down.",
	"reason.status":      "Your server responded with an error.",
	"reason.gone":        "Your server responded that the webhook is gone (410).",
	"reason.refused":     "Our rules no longer allow this address.",
	"reason.expired":     "Deliveries failed for too long.",
}
