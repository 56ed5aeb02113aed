package portal

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
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
	return v.hostTest("Options.Test", hook.URL, func() (string, error) { return v.Options.Test(v.ctx, v.Client, id) })
}

// try checks and probes a URL that isn't set, and sends a test to it.
func (v *visit) try() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.tryFor(scope)
}

// tryAll is try for the base.
func (v *visit) tryAll() error {
	if v.Options.OneOnly {
		return problem{status: http.StatusForbidden, key: "error.all_refused"}
	}
	return v.tryFor(webhookcfg.All())
}

func (v *visit) tryFor(scope webhookcfg.Scope) error {
	if v.Options.Try == nil {
		return notFound
	}
	if err := v.handler.Check(v.ctx, v.Client, scope, v.typedURL()); err != nil {
		return err
	}
	target := egress.NewURL(v.typedURL())
	return v.hostTest("Options.Try", target, func() (string, error) {
		return v.Options.Try(v.ctx, v.Client, scope.Entity(), target)
	})
}

// hostTest calls a function of the host that sends a test, and returns why the test failed.
func (v *visit) hostTest(function string, url egress.URL, call func() (reason string, err error)) error {
	reason := ""
	var waiter interface{ RetryAfter() time.Duration }
	err := v.host(function, url, func() (err error) {
		reason, err = call()
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
