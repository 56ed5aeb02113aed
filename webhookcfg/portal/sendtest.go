package portal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// test sends a test to the webhook in effect for an entity.
func (v *visit) test() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.testFor(scope)
}

// testAll sends a test to the base.
func (v *visit) testAll() error { return v.testFor(webhookcfg.All()) }

func (v *visit) testFor(scope webhookcfg.Scope) error {
	if v.Options.Test == nil {
		return notFound
	}
	hook, err := v.webhook(scope.Entity()) // which checks that the client can see it
	if err != nil {
		return err
	}
	if hook.Source == webhookcfg.SourceOff {
		return problem{status: http.StatusConflict, key: "error.off"}
	}
	if hook.URL.IsZero() {
		return problem{status: http.StatusConflict, key: "error.no_webhook"}
	}
	return v.hostTest("Options.Test", hook.URL, func(ctx context.Context) (string, error) {
		return v.Options.Test(ctx, v.Client, scope.Entity(), hook)
	})
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
	if err := v.handler.Check(v.ctx, v.Client, scope, v.typed("url")); err != nil {
		return err
	}
	target := egress.NewURL(v.typed("url"))
	return v.hostTest("Options.Try", target, func(ctx context.Context) (string, error) {
		return v.Options.Try(ctx, v.Client, scope.Entity(), target)
	})
}

// hostTest calls a function of the host that sends a test, and returns why the test failed. The
// function gets three quarters of the time that's left, so that there's some for the page that says
// so, even if the receiver never responds. A receiver that needs longer hasn't failed the test, as
// far as anybody knows.
func (v *visit) hostTest(function string, url egress.URL, call func(ctx context.Context) (reason string, err error)) error {
	ctx := v.ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*3/4)
		defer cancel()
	}
	reason, isLate := "", false
	var waiter interface{ RetryAfter() time.Duration }
	err := v.call(function, url, func() (err error) {
		reason, err = call(ctx)
		if errors.As(err, &waiter) {
			return nil
		}
		if unreachable, ok := errors.AsType[*egress.UnreachableError](err); ok && unreachable.Timeout() {
			isLate = true
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
	case isLate:
		return problem{status: http.StatusOK, key: "test.late"}
	case reason != "":
		return problem{status: http.StatusOK, key: "test.failed", detail: v.T("reason." + reason)}
	}
	return nil
}
