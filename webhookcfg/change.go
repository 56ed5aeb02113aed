package webhookcfg

import (
	"fmt"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Scope is the reach of a change: one entity, or all entities of a client. The zero value is
// invalid, so a missing identifier never means "all" by accident.
type Scope struct {
	all    bool
	entity string
}

// All is the scope of every entity of a client, including those that nobody has named yet.
func All() Scope { return Scope{all: true} }

// Entity is the scope of one entity. Entity("") is the zero Scope, which is invalid.
func Entity(id string) Scope { return Scope{entity: id} }

// IsAll reports whether s reaches every entity of the client.
func (s Scope) IsAll() bool { return s.all }

// Entity returns the identifier of the entity that s reaches. It's "" if s reaches all of
// them, or is invalid.
func (s Scope) Entity() string { return s.entity }

// String returns "all", "entity e1" or "invalid".
func (s Scope) String() string {
	switch {
	case s.all:
		return "all"
	case s.entity != "":
		return "entity " + s.entity
	default:
		return "invalid"
	}
}

// LogValue implements [slog.LogValuer]. Logs show the same text as String.
func (s Scope) LogValue() slog.Value { return slog.StringValue(s.String()) }

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
	// If you write a store, keep the time to the microsecond or better, even if it's zero,
	// and return it as [Webhook.Since].
	Time time.Time

	op op
}

type op uint8

const (
	opSet op = iota + 1
	opUnset
)

// SetChange returns the change that makes url the webhook of the scope.
func SetChange(client string, scope Scope, url egress.URL) Change {
	return Change{Client: client, Scope: scope, URL: url, op: opSet}
}

// UnsetChange returns the change that leaves the scope without a webhook.
func UnsetChange(client string, scope Scope) Change {
	return Change{Client: client, Scope: scope, op: opUnset}
}

// Validate returns nil if a store can apply the change: it has a client and a scope, and a set
// has a URL, but an unset has none. Otherwise the error wraps [ErrInvalidArgument]. You can
// tell a valid unset from a set by URL.IsZero.
func (c Change) Validate() error {
	switch {
	case c.Client == "":
		return fmt.Errorf("%w: change without a client", ErrInvalidArgument)
	case c.Scope == Scope{}:
		return fmt.Errorf("%w: change without a scope", ErrInvalidArgument)
	case c.op == opSet && c.URL.IsZero():
		return fmt.Errorf("%w: set without a URL", ErrInvalidArgument)
	case c.op == opUnset && !c.URL.IsZero():
		return fmt.Errorf("%w: unset with a URL", ErrInvalidArgument)
	case c.op != opSet && c.op != opUnset:
		return fmt.Errorf("%w: the change is neither set nor unset: build it with SetChange or UnsetChange", ErrInvalidArgument)
	}
	return nil
}

// Webhook is the webhook in effect for one entity, and where it comes from. The zero value
// means that nothing is set.
type Webhook struct {
	// URL is where notifications go. It's the zero URL if there is no webhook.
	URL egress.URL
	// Source says whether an override or the base decided.
	Source Source
	// Since is the [Change.Time] of the change that decided, and zero with SourceNone. You
	// can use it to identify the setting: if the client sets the webhook again, even to the
	// same URL, Since changes.
	Since time.Time
}

// Source is the kind of entry that decides on the webhook in effect.
type Source uint8

// The sources. The zero value is SourceNone.
const (
	// SourceNone: there's neither an override nor a base, so there is no webhook.
	SourceNone Source = iota
	// SourceOverride: the entity has its own URL.
	SourceOverride
	// SourceOff: the client unset the entity. It has no webhook, even if there's a base.
	SourceOff
	// SourceBase: the entity has the URL that the client set for all.
	SourceBase
)

// String returns "none", "override", "off" or "base", like the responses.
func (s Source) String() string {
	switch s {
	case SourceNone:
		return "none"
	case SourceOverride:
		return "override"
	case SourceOff:
		return "off"
	case SourceBase:
		return "base"
	default:
		return fmt.Sprintf("Source(%d)", uint8(s))
	}
}
