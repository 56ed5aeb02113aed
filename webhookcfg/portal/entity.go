package portal

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// entity shows the webhook in effect for one entity.
func (v *visit) entity() error {
	id := v.asked("id")
	hook, err := v.handler.Read(v.ctx, v.Client, id)
	if err != nil {
		return err
	}
	v.Template, v.ID, v.Hook = "entity", id, v.hook(id, hook)
	v.showRecent(webhookcfg.Entity(id))
	return nil
}

// setForm shows the form again with which a person sets the webhook of an entity. The overview has
// one, too, so it also gets those with an identifier that isn't one.
func (v *visit) setForm() error {
	if err := v.entity(); err == nil || v.ctx.Err() != nil {
		return err // there's no time for another page either
	}
	v.ID = ""
	return v.overview()
}

// set sets the webhook of one entity.
func (v *visit) set() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typed("url"))
}

// unset leaves one entity without a webhook.
func (v *visit) unset() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Unset(v.ctx, v.Client, scope)
}

// entityScope returns the scope of the entity that the person typed. If the field is empty,
// that's an error, and never means all.
func (v *visit) entityScope() (webhookcfg.Scope, error) {
	if id := v.typed("id"); id != "" {
		return webhookcfg.Entity(id), nil
	}
	return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.no_id"}
}
