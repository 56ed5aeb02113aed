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
func test(v *visit) error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return testFor(v, scope)
}

// testAll sends a test to the base.
func testAll(v *visit) error { return testFor(v, webhookcfg.All()) }

func testFor(v *visit, scope webhookcfg.Scope) error {
	if v.Options.Test == nil {
		return notFound
	}
	hook, err := readWebhook(v, scope.Entity()) // which checks that the client can see it
	if err != nil {
		return err
	}
	if hook.Source == webhookcfg.SourceOff {
		return problem{status: http.StatusConflict, key: "error.off"}
	}
	if hook.URL.IsZero() {
		return problem{status: http.StatusConflict, key: "error.no_webhook"}
	}
	return hostTest(v, "test", scope, hook.URL, func(ctx context.Context) (string, error) {
		return v.Options.Test(ctx, v.Client, scope.Entity(), hook)
	})
}

// try checks and probes a URL that isn't set, and sends a test to it.
func try(v *visit) error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return tryFor(v, scope)
}

// tryAll is try for the base.
func tryAll(v *visit) error {
	if v.Options.OneOnly {
		return problem{status: http.StatusForbidden, key: "error.all_refused"}
	}
	return tryFor(v, webhookcfg.All())
}

func tryFor(v *visit, scope webhookcfg.Scope) error {
	if v.Options.Try == nil {
		return notFound
	}
	if err := v.handler.Check(v.ctx, v.Client, scope, v.typed("url")); err != nil {
		return err
	}
	target := egress.NewURL(v.typed("url"))
	return hostTest(v, "try", scope, target, func(ctx context.Context) (string, error) {
		return v.Options.Try(ctx, v.Client, scope.Entity(), target)
	})
}

// hostTest calls a function of the host that sends a test, and returns why the test failed. The
// function gets three quarters of the time that's left, so that there's some for the page that says
// so, even if the receiver never responds. A receiver that needs longer hasn't failed the test, as
// far as anybody knows.
func hostTest(v *visit, operation string, scope webhookcfg.Scope, url egress.URL, call func(ctx context.Context) (reason string, err error)) error {
	reason, isLate := "", false
	var waiter interface{ RetryAfter() time.Duration }
	err := v.do(operation, scope, url, func(ctx context.Context) (err error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*3/4)
			defer cancel()
		}
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

// testTexts are the words of tests.
var testTexts = map[string]string{
	"test":             "Send a test",
	"try":              "Try it",
	"try.what":         "Sends a test to this URL, and changes nothing.",
	"test.what":        "If your server accepts it, stopped deliveries resume.",
	"done.try":         "Your server accepted the test. Nothing was changed: set the webhook now.",
	"done.try-all":     "Your server accepted the test. Nothing was changed: set the webhook now.",
	"done.test":        "The test was accepted by your server.",
	"done.test-all":    "The test was accepted by your server.",
	"test.failed":      "The test failed.",
	"test.late":        "Your server didn't respond within the time that a test has, so we can't tell whether it accepted the test. Notifications wait longer for a response.",
	"error.test_wait":  "A test was sent a moment ago, or your server asked for a pause.",
	"error.no_webhook": "No webhook is set, so no test was sent. Set one first.",
	"error.off":        "This entity is turned off, so no test was sent. Set a webhook for it first.",
}
