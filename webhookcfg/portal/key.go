package portal

import (
	"context"
	"errors"

	"example.com/go-webhookcfg/webhookcfg"
)

// keyPage shows the signing key of the webhook in effect for an entity, or of the base.
type keyPage struct {
	*frame
	Hook hookView
	Key  string // "" if there's no webhook
}

// showKey shows the signing key of the webhook in effect for an entity, or of the base.
func showKey(v *visit) (any, error) {
	id := v.asked("id")
	hook, key, err := readKey(v, id)
	if err != nil {
		return nil, err
	}
	return &keyPage{v.about("key", "key.title", id), hookView{Webhook: hook}, key}, nil
}

// readKey asks the host for a signing key.
func readKey(v *visit, id string) (hook webhookcfg.Webhook, key string, err error) {
	if v.Options.SigningKey == nil {
		return hook, "", notFound
	}
	hook, err = readWebhook(v, id)
	if err != nil {
		return hook, "", err
	}
	scope := webhookcfg.All()
	if id != "" {
		scope = webhookcfg.Entity(id)
	}
	err = v.do("signing_key", scope, hook.URL, func(ctx context.Context) (err error) {
		key, err = v.Options.SigningKey(ctx, v.Client, id, hook)
		if err == nil && key == "" && !hook.URL.IsZero() {
			err = errors.New("there is no key")
		}
		return err
	})
	return hook, key, err
}

// keyTexts are the words of the page of a signing key.
var keyTexts = map[string]string{
	"key.title": "Signing key",
	"key.what":  "Verify with this key that a notification comes from us. Treat it like a password.",
	"key.none":  "There is no webhook. Its key is here once you have set one.",
	"key.show":  "Show the signing key",
}
