package table

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// client is the state of one client.
type client struct {
	base      setting // without a URL if there is no base
	overrides ordered[setting]
}

// setting is what a change leaves behind: a URL or, for "off", none.
type setting struct {
	url   egress.URL
	since int64 // seconds of Unix time
}

// apply makes a change. One of all entities begins a new state in place of the
// old one, and so costs the same whatever the old one held.
func (c *client) apply(change webhookcfg.Change) {
	s := setting{url: change.URL, since: change.Time.Unix()}
	unset, entity := change.URL.IsZero(), change.Scope.Entity()
	switch {
	case change.Scope.IsAll() && unset:
		*c = client{}
	case change.Scope.IsAll():
		*c = client{base: s}
	case unset && !c.hasBase():
		c.overrides.delete(entity)
	default:
		c.overrides.set(entity, s)
	}
}

func (c *client) resolve(entity string) webhookcfg.Webhook {
	if s, ok := c.overrides.get(entity); ok {
		return s.override()
	}
	return c.baseWebhook()
}

func (c *client) page(after string, limit int) webhookcfg.Page {
	page := webhookcfg.Page{Base: c.baseWebhook()}
	for entity, s := range c.overrides.after(after) {
		if len(page.Overrides) == limit {
			page.Next = page.Overrides[limit-1].Entity
			break
		}
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: s.override()})
	}
	return page
}

func (c *client) hasBase() bool { return !c.base.url.IsZero() }

func (c *client) baseWebhook() webhookcfg.Webhook {
	if !c.hasBase() {
		return webhookcfg.Webhook{}
	}
	return c.base.webhook(webhookcfg.SourceBase)
}

// records counts the settings.
func (c *client) records() int {
	if c.hasBase() {
		return c.overrides.len() + 1
	}
	return c.overrides.len()
}

// override is s as the override of an entity.
func (s setting) override() webhookcfg.Webhook {
	if s.url.IsZero() {
		return s.webhook(webhookcfg.SourceOff)
	}
	return s.webhook(webhookcfg.SourceOverride)
}

func (s setting) webhook(source webhookcfg.Source) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: s.url, Source: source, Since: time.Unix(s.since, 0).UTC()}
}
