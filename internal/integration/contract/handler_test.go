package contract_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	configure = "/api/v1/configure/configure-webhook"
	variant   = "/api/v1/configuration/configure-webhook"
)

// The tests' credentials: two valid ones, and one for each way in which the verifier fails.
const (
	acme      = "acme:s3cret"
	other     = "other:0ther"
	stranger  = "stranger:s3cret"
	throttled = "throttled:s3cret"
	outage    = "outage:s3cret"
	defect    = "defect:s3cret"
)

// noon is the time of every change of the tests.
var noon = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errBroken = errors.New("broken on purpose")

// waitError is an error of a throttle or a busy prober.
type waitError struct{}

func (waitError) Error() string             { return "too fast" }
func (waitError) RetryAfter() time.Duration { return 1500 * time.Millisecond }

type verifier func(pair string) error

func (v verifier) Verify(_ context.Context, id, secret string) (webhookcfg.Client, error) {
	return webhookcfg.Client{ID: id}, v(id + ":" + secret)
}

func verify(pair string) error {
	switch pair {
	case acme, other:
		return nil
	case throttled:
		return waitError{}
	case outage:
		return errBroken
	case defect:
		panic("in the verifier")
	}
	return webhookcfg.ErrInvalidCredentials
}

type prober struct{}

func (prober) Probe(_ context.Context, _ string, target egress.URL) error {
	switch target.Reveal() {
	case "https://down.example.com/":
		return errBroken
	case "https://busy.example.com/":
		return waitError{}
	}
	return nil
}

// entityExists accepts every entity but one.
func entityExists(_ context.Context, _, entity string) (bool, error) {
	return entity != "foreign", nil
}

// reserved is the host's reason to refuse changes of an entity. In YAML, its code without
// quotes would be no text.
var reserved = webhookcfg.Refusal{Code: "null", Description: "This identifier is reserved: #1"}

func checkChange(_ context.Context, c webhookcfg.Change) error {
	if c.Scope == webhookcfg.Entity("reserved") {
		return reserved
	}
	return nil
}

// options returns the options of a handler that can send every response, except for the 405
// of a handler without reads.
func options() *webhookcfg.Options {
	return &webhookcfg.Options{
		Reads:        true,
		Prober:       prober{},
		EntityExists: entityExists,
		CheckChange:  checkChange,
		Refusals:     []webhookcfg.Refusal{reserved},
		Now:          func() time.Time { return noon },
	}
}

func newHandler(t *testing.T, st webhookcfg.Store, o *webhookcfg.Options) *webhookcfg.Handler {
	t.Helper()
	return hooktest.NewHandler(t, st, verifier(verify), o)
}

// serve serves a handler with a store and returns its URL.
func serve(t *testing.T, st webhookcfg.Store, o *webhookcfg.Options) (base string) {
	t.Helper()
	return hooktest.Serve(t, newHandler(t, st, o)).URL
}

// serveAll serves a handler that can send every response.
func serveAll(t *testing.T) (base string) {
	t.Helper()
	return serve(t, store.NewMemory(), options())
}
