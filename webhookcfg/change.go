package webhookcfg

import (
	"context"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Change is a set or an unset by a client, of one entity or of all. Build it with [SetChange]
// or [UnsetChange]. The zero value is invalid.
type Change struct {
	// Client owns the configuration.
	Client string
	// Scope says which entities the change reaches.
	Scope Scope
	// URL is the webhook to set. It's the zero URL in an unset.
	URL egress.URL
	// Time identifies the setting that the change makes. The handler sets it to the current
	// time in whole microseconds, and always later than in its previous change. Do the same
	// if you call Apply yourself.
	//
	// If you write a store, keep the time to the microsecond or better, also a zero
	// one, and return it as [Webhook.Since].
	Time time.Time

	kind kind
}

type kind uint8

const (
	kindSet kind = iota + 1
	kindUnset
)

// SetChange returns the change that makes url the webhook of the scope.
func SetChange(client string, scope Scope, url egress.URL) Change {
	return Change{Client: client, Scope: scope, URL: url, kind: kindSet}
}

// UnsetChange returns the change that leaves the scope without a webhook.
func UnsetChange(client string, scope Scope) Change {
	return Change{Client: client, Scope: scope, kind: kindUnset}
}

// Validate returns nil if a store can apply the change: it has a client and a scope, and a set
// has a URL, but an unset has none. Otherwise the error wraps [ErrInvalidArgument]. You can tell
// a valid unset from a set by [egress.URL.IsZero].
func (c Change) Validate() error {
	switch {
	case c.Client == "":
		return fmt.Errorf("%w: change without a client", ErrInvalidArgument)
	case c.Scope == Scope{}:
		return fmt.Errorf("%w: change without a scope", ErrInvalidArgument)
	case c.kind == kindSet && c.URL.IsZero():
		return fmt.Errorf("%w: set without a URL", ErrInvalidArgument)
	case c.kind == kindUnset && !c.URL.IsZero():
		return fmt.Errorf("%w: unset with a URL", ErrInvalidArgument)
	case c.kind != kindSet && c.kind != kindUnset:
		return fmt.Errorf("%w: the change is neither set nor unset: build it with SetChange or UnsetChange", ErrInvalidArgument)
	}
	return nil
}

// checkChange asks the host whether a change can be made.
func (o *operation) checkChange(ctx context.Context, c Change) *apiError {
	if o.h.options.CheckChange == nil {
		return nil
	}
	err := o.h.options.CheckChange(ctx, c)
	if err == nil {
		return nil
	}
	if e := o.refused(err); e != nil {
		return e
	}
	return unavailable(fmt.Errorf("CheckChange: %w", err))
}
