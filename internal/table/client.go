package table

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// client is the configuration of one client.
type client struct {
	base      webhook // without a URL if there is no base
	overrides ordered[webhook]
	// bytes is the total length of the names and URLs in the changes that you'd need to make
	// this client.
	bytes int64
}

// webhook is the stored part of a [webhookcfg.Webhook]: a URL, or none for "off".
type webhook struct {
	url   egress.URL
	since int64 // Unix time in microseconds
}

// apply makes a change. A change of all entities replaces the state, so it costs the same
// regardless of the number of overrides.
func (c *client) apply(change webhookcfg.Change) {
	hook := webhook{url: change.URL, since: change.Time.UnixMicro()}
	unset, entity := change.URL.IsZero(), change.Scope.Entity()
	names := int64(len(change.Client) + len(entity))
	switch {
	case change.Scope.IsAll() && unset:
		*c = client{}
	case change.Scope.IsAll():
		*c = client{base: hook, bytes: names + hook.bytes()}
	case unset && !c.hasBase():
		if old, known := c.overrides.delete(entity); known {
			c.bytes -= names + old.bytes()
		}
	default:
		old, known := c.overrides.set(entity, hook)
		if !known {
			c.bytes += names
		}
		c.bytes += hook.bytes() - old.bytes()
	}
}

func (w webhook) bytes() int64 { return int64(len(w.url.Reveal())) }

func (c *client) resolve(entity string) webhookcfg.Webhook {
	if hook, ok := c.overrides.values[entity]; ok {
		return hook.override()
	}
	return c.baseWebhook()
}

func (c *client) page(after string, limit int) webhookcfg.Page {
	page := webhookcfg.Page{Base: c.baseWebhook()}
	for entity, hook := range c.overrides.after(after) {
		if len(page.Overrides) == limit {
			page.Next = page.Overrides[limit-1].Entity
			break
		}
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: hook.override()})
	}
	return page
}

func (c *client) hasBase() bool { return !c.base.url.IsZero() }

func (c *client) baseWebhook() webhookcfg.Webhook {
	if !c.hasBase() {
		return webhookcfg.Webhook{}
	}
	return c.base.from(webhookcfg.SourceBase)
}

// records counts the base, if there is one, and the overrides.
func (c *client) records() int {
	if c.hasBase() {
		return c.overrides.len() + 1
	}
	return c.overrides.len()
}

// override returns w as the webhook of an entity that has an override.
func (w webhook) override() webhookcfg.Webhook {
	if w.url.IsZero() {
		return w.from(webhookcfg.SourceOff)
	}
	return w.from(webhookcfg.SourceOverride)
}

func (w webhook) from(source webhookcfg.Source) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: w.url, Source: source, Since: time.UnixMicro(w.since).UTC()}
}
