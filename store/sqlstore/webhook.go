package sqlstore

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// baseWebhook is what the row of a client says of all its entities.
func baseWebhook(url []byte, since int64) webhookcfg.Webhook {
	if len(url) == 0 {
		return webhookcfg.Webhook{}
	}
	return newWebhook(url, webhookcfg.SourceBase, since)
}

// overrideWebhook is what the row of an entity says; without a URL it is off.
func overrideWebhook(url []byte, since int64) webhookcfg.Webhook {
	if len(url) == 0 {
		return newWebhook(nil, webhookcfg.SourceOff, since)
	}
	return newWebhook(url, webhookcfg.SourceOverride, since)
}

func newWebhook(url []byte, source webhookcfg.Source, since int64) webhookcfg.Webhook {
	return webhookcfg.Webhook{
		URL:    egress.NewURL(string(url)),
		Source: source,
		Since:  time.Unix(since, 0).UTC(),
	}
}
