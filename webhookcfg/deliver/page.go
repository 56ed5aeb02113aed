package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Tester returns [Sender.Test] in the form that the option Test of package portal needs. Each
// test sends m under an ID of its own, which starts with "test_", so leave m.ID empty.
//
// The function returns "" if the receiver accepted the test, and otherwise the public word for
// the reason. If the test has to wait, its error has a method RetryAfter. Any other error
// means that the test couldn't be made. You can use it concurrently.
func (s *Sender) Tester(m Message) func(ctx context.Context, client, entity string) (reason string, err error) {
	return func(ctx context.Context, client, entity string) (reason string, err error) {
		return testResult(s.Test(ctx, client, entity, testMessage(m)))
	}
}

// Trier returns [Sender.Try] in the form that the option Try of package portal needs. See
// [Sender.Tester].
func (s *Sender) Trier(m Message) func(ctx context.Context, client, entity string, target egress.URL) (reason string, err error) {
	return func(ctx context.Context, client, entity string, target egress.URL) (reason string, err error) {
		return testResult(s.Try(ctx, client, entity, target, testMessage(m)))
	}
}

func testMessage(m Message) Message {
	m.ID = "test_" + rand.Text()
	return m
}

func testResult(r Result) (reason string, err error) {
	reason = r.Reason.Public()
	switch {
	case r.Outcome == Delivered, reason != "":
		return reason, nil
	case r.Reason == ReasonBusy, r.Reason == ReasonPaused:
		return "", &waitError{r.Err, r.Wait}
	case r.Err != nil:
		return "", r.Err
	default:
		return "", errNoWebhook
	}
}

var errNoWebhook = errors.New("deliver: no webhook to test")

// waitError asks to wait.
type waitError struct {
	error
	wait time.Duration
}

func (e *waitError) Unwrap() error             { return e.error }
func (e *waitError) RetryAfter() time.Duration { return e.wait }

// SigningKey returns the keys in the form that the option SigningKey of package portal needs:
// a function that returns the text of the present key for the webhook in effect for an entity,
// or for the base if the entity is "". Without a webhook, it's the key of the client, or "" if
// that has none. The error means that Keys failed, or has no key. You can use it concurrently.
func SigningKey(keys Keys) func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
	return func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
		loaded, err := loadKeys(ctx, keys, newRecipient(client, entity, hook))
		if hook.URL.IsZero() && errors.Is(err, errNoKey) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return loaded[0].Reveal(), nil
	}
}
