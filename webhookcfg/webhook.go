package webhookcfg

import (
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
