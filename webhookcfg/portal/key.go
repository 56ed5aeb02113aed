package portal

import "errors"

// key shows the signing key of the webhook in effect for an entity, or of the base.
func (v *visit) key() error {
	if v.Options.SigningKey == nil {
		return notFound
	}
	id := v.asked("id")
	hook, err := v.webhook(id)
	if err != nil {
		return err
	}
	v.Template, v.Title, v.ID, v.Hook = "key", "key.title", id, hookView{Webhook: hook}
	return v.call("Options.SigningKey", hook.URL, func() (err error) {
		v.Key, err = v.Options.SigningKey(v.ctx, v.Client, id, hook)
		if err == nil && v.Key == "" && !hook.URL.IsZero() {
			err = errors.New("there is no key")
		}
		return err
	})
}
