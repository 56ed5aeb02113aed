package portal

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// set sets the webhook of one entity.
func (v *visit) set() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.Typed("url"))
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
	if id := v.Typed("id"); id != "" {
		return webhookcfg.Entity(id), nil
	}
	return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.no_id"}
}

// setAll sets the webhook of all entities.
func (v *visit) setAll() error {
	scope, err := v.allScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.Typed("url"))
}

// unsetAll leaves all entities without a webhook.
func (v *visit) unsetAll() error {
	scope, err := v.allScope()
	if err != nil {
		return err
	}
	return v.handler.Unset(v.ctx, v.Client, scope)
}

// allScope returns the scope of all entities, if the person typed the word that confirms it.
func (v *visit) allScope() (webhookcfg.Scope, error) {
	switch {
	case v.Options.OneOnly:
		return webhookcfg.Scope{}, problem{status: http.StatusForbidden, key: "error.all_refused"}
	case v.Typed("confirm") != "all":
		return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.confirm"}
	}
	return webhookcfg.All(), nil
}
