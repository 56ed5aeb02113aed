package portal

import "example.com/go-webhookcfg/webhookcfg"

// entityPage shows the webhook in effect for one entity.
type entityPage struct {
	*frame
	recent
	Hook hookView
	URL  string // that a person typed
}

// showEntity shows the webhook in effect for one entity.
func showEntity(v *visit) (any, error) {
	id := v.asked("id")
	hook, err := v.handler.Read(v.ctx, v.Client, id)
	if err != nil {
		return nil, err
	}
	p := &entityPage{frame: v.about("entity", "title", id), Hook: readDeliveries(v, id, hook), URL: v.typed("url")}
	p.recent = readRecent(v, webhookcfg.Entity(id))
	return p, nil
}

// showSetForm shows the form again with which a person sets the webhook of an entity. The overview has
// one, too, so it also gets those with an identifier that isn't one.
func showSetForm(v *visit) (any, error) {
	p, err := showEntity(v)
	if err == nil || v.ctx.Err() != nil {
		return p, err // there's no time for another page either
	}
	return showOverview(v)
}

// set sets the webhook of one entity.
func set(v *visit) error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typed("url"))
}

// unset leaves one entity without a webhook.
func unset(v *visit) error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Unset(v.ctx, v.Client, scope)
}

// entityTexts are the words of the page of an entity, and of its forms.
var entityTexts = map[string]string{
	"source.override": "This entity has a webhook of its own. The default doesn't apply to it.",
	"source.off":      "This entity is turned off: it gets no notifications, whatever the default is.",
	"source.base":     "This entity has no setting of its own, so the default applies.",
	"source.none":     "Nothing is set for this entity, and there is no default. It gets no notifications.",
	"entity.change":   "Change",
	"entity.own":      "The default no longer applies to an entity that has a webhook of its own. The only way back is to set all entities again.",
	"entity.off":      "No notifications are sent for this entity from then on, until you set a webhook for it, or for all, again. It doesn't go back to the default.",
	"entity.turn-off": "Turn off",
	"done.set":        "The webhook is set.",
	"done.unset":      "This entity has no webhook now.",
	"error.no_id":     "Nothing was changed. Type the ID of an entity.",
}
