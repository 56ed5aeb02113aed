package table

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// client is the state of one client.
type client struct {
	overrides ordered[setting]
	base      setting // without a URL if there is no base
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

func (c *client) resolve(entity string) Decision {
	if s, ok := c.overrides.get(entity); ok {
		return Decision{s, s.override()}
	}
	return Decision{c.base, c.baseSource()}
}

func (c *client) page(after string, limit int) webhookcfg.Page {
	page := webhookcfg.Page{Base: Decision{c.base, c.baseSource()}.Webhook()}
	for entity, s := range c.overrides.after(after) {
		if len(page.Overrides) == limit {
			page.Next = page.Overrides[limit-1].Entity
			break
		}
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: Decision{s, s.override()}.Webhook()})
	}
	return page
}

func (c *client) hasBase() bool { return !c.base.url.IsZero() }

func (c *client) baseSource() webhookcfg.Source {
	if !c.hasBase() {
		return webhookcfg.SourceNone
	}
	return webhookcfg.SourceBase
}

// records counts the settings.
func (c *client) records() int {
	if c.hasBase() {
		return c.overrides.len() + 1
	}
	return c.overrides.len()
}

// override returns the source of a webhook that s, an override, decides.
func (s setting) override() webhookcfg.Source {
	if s.url.IsZero() {
		return webhookcfg.SourceOff
	}
	return webhookcfg.SourceOverride
}

// Decision is the setting that decides for an entity, and which one that is. The
// zero value is that none does.
type Decision struct {
	setting setting
	source  webhookcfg.Source
}

// Webhook returns what was decided.
func (d Decision) Webhook() webhookcfg.Webhook {
	if d.source == webhookcfg.SourceNone {
		return webhookcfg.Webhook{}
	}
	return webhookcfg.Webhook{URL: d.setting.url, Source: d.source, Since: time.Unix(d.setting.since, 0).UTC()}
}
