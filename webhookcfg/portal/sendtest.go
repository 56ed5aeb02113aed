package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// test sends a test to the webhook in effect for an entity, or to the base.
func (v *visit) test() error {
	if v.Options.Test == nil {
		return notFound
	}
	id := v.Typed("id")
	if id == "" && v.form.Has("id") {
		return problem{status: http.StatusBadRequest, key: "error.no_id"}
	}
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
