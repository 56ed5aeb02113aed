package webhookcfg

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// authenticate signs the caller in.
func (x *exchange) authenticate(ctx context.Context) *fault {
	id, secret, err := basicCredentials(x.r.Header)
	if err != nil {
		return invalidClient(err)
	}
	x.secret = secret
	var client Client
	err = x.call(ctx, func() (err error) {
		client, err = x.h.verifier.Verify(ctx, id, secret)
		return err
	})
	if err != nil {
		return verifierFault(err)
	}
	if client.ID == "" {
		return serverError(errNamelessClient)
	}
	x.event.Client = client.ID
	return nil
}

var errNamelessClient = errors.New("webhookcfg: the verifier returned a client without an ID")

func invalidClient(cause error) *fault {
	return &fault{code: codeInvalidClient, description: "Invalid client credentials", cause: cause}
}

func verifierFault(err error) *fault {
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	if errors.Is(err, ErrInvalidCredentials) {
		return invalidClient(err)
	}
	return unavailable(err)
}

// unknownPolicy says what becomes of an entity that the catalogue does not know.
type unknownPolicy uint8

const (
	// unknownRefused: a set needs a valid entity.
	unknownRefused unknownPolicy = iota
	// unknownWithEntry: what was set while the entity was valid can still be read
	// and unset.
	unknownWithEntry
)

// checkKnown asks the host's catalogue about the one entity of a scope.
func (x *exchange) checkKnown(ctx context.Context, scope Scope, unknown unknownPolicy) *fault {
	if x.h.catalogue == nil || scope.IsAll() {
		return nil
	}
	var known bool
	err := x.call(ctx, func() (err error) {
		known, err = x.h.catalogue(ctx, x.event.Client, scope.Entity())
		return err
	})
	if err != nil {
		return unavailable(fmt.Errorf("catalogue: %w", err))
	}
	if known {
		return nil
	}
	if unknown == unknownWithEntry {
		hook, f := x.resolve(ctx, scope.Entity())
		if f != nil {
			return f
		}
		if hook.Source == SourceOverride || hook.Source == SourceOff {
			return nil
		}
	}
	return &fault{code: codeUnknownEntity, description: "There is no such entity"}
}

func (x *exchange) resolve(ctx context.Context, entity string) (hook Webhook, f *fault) {
	err := x.call(ctx, func() (err error) {
		hook, err = x.h.store.Resolve(ctx, x.event.Client, entity)
		return err
	})
	if err != nil {
		return Webhook{}, storeFault(err)
	}
	return hook, nil
}

// probe checks that the target can be reached, as the host wants it.
func (x *exchange) probe(ctx context.Context, target egress.URL) *fault {
	if x.h.probeMode == ProbeOff {
		return nil
	}
	probeCtx, cancel := context.WithTimeout(ctx, x.h.probeTimeout)
	defer cancel()
	err := x.call(ctx, func() error { return x.h.prober.Probe(probeCtx, x.event.Client, target) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // not the target's fault
		return unavailable(err)
	case x.h.probeMode == ProbeWarn:
		x.event.Err = x.scrub(err)
		return nil
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	return &fault{code: codeWebhookUnreachable, description: "The webhook URL could not be reached", cause: err}
}

// apply hands the checked change to the store.
func (x *exchange) apply(ctx context.Context, c Change) ([]byte, *fault) {
	c.Time = x.start
	if x.h.now != nil {
		c.Time = x.h.now()
	}
	if err := x.call(ctx, func() error { return x.h.store.Apply(ctx, c) }); err != nil {
		return nil, storeFault(err)
	}
	return success, nil
}
