package webhookcfg

import (
	"fmt"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Scope is the reach of a change: one entity, or all entities of a client. Its zero
// value is neither, and invalid: a missing identifier never means "all".
type Scope struct {
	all    bool
	entity string
}

// All is the scope of every entity of a client, including those never named before.
func All() Scope { return Scope{all: true} }

// Entity is the scope of one entity. Entity("") is the invalid zero Scope.
func Entity(id string) Scope { return Scope{entity: id} }

// IsAll reports whether s reaches every entity of the client.
func (s Scope) IsAll() bool { return s.all }

// Entity returns the identifier of the one entity that s reaches, or "" if s
// reaches all of them or is invalid.
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

// LogValue implements [slog.LogValuer] with what String returns.
func (s Scope) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Change is one set or unset, by one client, of one entity or of all. Build it with
// [SetChange] or [UnsetChange]; the zero value is invalid.
type Change struct {
	// Client owns the configuration.
	Client string
	// Scope is the reach of the change.
	Scope Scope
	// URL is the webhook to set; the zero URL in an unset.
	URL egress.URL
	// Time identifies what the change sets. A store keeps it, the zero value too, at least to
	// the microsecond, and returns it as [Webhook.Since]. A handler sets it to the time of
	// applying the change, in whole microseconds and always later than the change before. Do
	// the same if you call Apply yourself.
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

// Validate returns nil for a change that a store can apply: it has a client and a scope, and
// a URL exactly if it was built by [SetChange]. Otherwise the error wraps
// [ErrInvalidArgument]. A valid change is an unset if URL.IsZero.
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
		return fmt.Errorf("%w: change that is neither set nor unset", ErrInvalidArgument)
	}
	return nil
}

// Webhook is the webhook in effect for one entity, with its source. The zero value
// means that nothing is configured.
type Webhook struct {
	// URL is where notifications go; the zero URL where there is no webhook.
	URL egress.URL
	// Source is the entry that decided.
	Source Source
	// Since is the [Change.Time] of the change that decided; zero if Source is SourceNone. It
	// identifies the setting: setting the webhook again, even with the same URL, changes it.
	Since time.Time
}

// Source is the entry that decides which webhook is in effect.
type Source uint8

// The sources, in the order in which a resolve looks for them.
const (
	// SourceNone: neither an override nor a base; there is no webhook.
	SourceNone Source = iota
	// SourceOverride: the entity has a URL of its own.
	SourceOverride
	// SourceOff: the entity was unset; there is no webhook, whatever the base.
	SourceOff
	// SourceBase: the URL that was set for all entities.
	SourceBase
)

// String returns "none", "override", "off" or "base", as in the responses.
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
