package portal

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// hookView is a webhook as the pages show it.
type hookView struct {
	webhookcfg.Webhook
	State, Reason            string // keys of texts; State is "" if no deliveries are shown
	LastSuccess, LastFailure time.Time
	PausedUntil              time.Time // zero if there's no pause
	IsShown                  bool      // with its path and query
}

// readWebhook returns the webhook in effect for an entity, or the base if the identifier is "".
func readWebhook(v *visit, id string) (webhookcfg.Webhook, error) {
	if id != "" {
		return v.handler.Read(v.ctx, v.Client, id)
	}
	page, err := v.handler.List(v.ctx, v.Client, "", 1)
	return page.Base, err
}

// webhookTexts are the words for a webhook.
var webhookTexts = map[string]string{
	"url":       "URL",
	"since":     "Since",
	"hidden":    "the rest is hidden",
	"show":      "Show the full URL",
	"hide":      "Hide it",
	"set":       "Set webhook",
	"hint":      "Starts with https://. It's checked before it replaces the present one.",
	"hint.http": "Starts with https:// or http://. It's checked before it replaces the present one.",
	"base.what": "Where notifications go for every entity that has no setting of its own.",
	"base.none": "There is no default. Entities without a setting of their own get no notifications.",
}
