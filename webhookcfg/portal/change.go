package portal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// set sets the webhook of one entity.
func (v *visit) set() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typedURL())
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

// typedURL returns the URL that the person typed, without the white space that pasting adds.
func (v *visit) typedURL() string { return strings.TrimSpace(v.Typed("url")) }

// setAll sets the webhook of all entities.
func (v *visit) setAll() error {
	scope, err := v.allScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typedURL())
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
	case strings.TrimSpace(v.Typed("confirm")) != "all":
		return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.confirm"}
	}
	return webhookcfg.All(), nil
}

// test sends a test to the webhook in effect for an entity, or to the base.
func (v *visit) test() error {
	if v.Options.Test == nil {
		return notFound
	}
	id := v.Typed("id")
	hook, err := v.tested(id)
	if err != nil {
		return err
	}
	reason := ""
	var waiter interface{ RetryAfter() time.Duration }
	err = v.host("Options.Test", hook.URL, func() (err error) {
		reason, err = v.Options.Test(v.ctx, v.Client, id)
		if errors.As(err, &waiter) {
			return nil
		}
		if err == nil && reason != "" && texts["reason."+reason] == "" {
			err = fmt.Errorf("unknown reason %q", reason)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case waiter != nil:
		return problem{status: http.StatusTooManyRequests, key: "error.test_wait", wait: max(waiter.RetryAfter(), time.Second)}
	case reason != "":
		return problem{status: http.StatusOK, key: "test.failed", detail: v.T("reason." + reason)}
	}
	return nil
}

// tested returns the webhook that a test would reach, if the client can see it.
func (v *visit) tested(id string) (hook webhookcfg.Webhook, err error) {
	if id != "" {
		hook, err = v.handler.Read(v.ctx, v.Client, id)
	} else {
		var page webhookcfg.Page
		page, err = v.handler.List(v.ctx, v.Client, "", 1)
		hook = page.Base
	}
	if err == nil && hook.URL.IsZero() {
		err = problem{status: http.StatusConflict, key: "error.no_webhook"}
	}
	return hook, err
}
