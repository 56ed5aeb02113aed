package portal

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// overviewPage shows the base and the overrides.
type overviewPage struct {
	*frame
	recent
	Hook              hookView // the base
	Rows              []row
	Find, After, Next string
	Trouble           []row // webhooks whose deliveries fail; the ID of the base is ""
	MoreTrouble       int   // webhooks that aren't in Trouble
	IsPartial         bool  // Trouble is only that of this page
	TypedID, URL      string
}

// row is an override in a list.
type row struct {
	ID   string
	Hook hookView
}

// showOverview shows the base and the overrides. After a search, it shows only overrides whose
// identifiers start with the text.
func showOverview(v *visit) (any, error) {
	p := &overviewPage{
		frame: v.about("overview", "title", ""),
		Find:  strings.TrimSpace(v.query.Get("find")), After: v.query.Get("after"),
		TypedID: v.typed("id"), URL: v.typed("url"),
	}
	after := cmp.Or(p.After, p.Find)
	overrides, err := p.read(v, after)
	if err != nil {
		return nil, err
	}
	for _, o := range overrides {
		p.Rows = append(p.Rows, row{o.Entity, readDeliveries(v, o.Entity, o.Webhook)})
	}
	p.findTrouble()
	isPage := p.Find == "" && (p.Next != "" || p.After != "")
	p.IsPartial = isPage && v.Parent.DeliveryStatus != nil && !v.isUnknown
	if after == "" {
		p.recent = readRecent(v, webhookcfg.All())
	}
	return p, nil
}

// read reads the base, and returns the overrides of the page.
func (p *overviewPage) read(v *visit, after string) ([]webhookcfg.Override, error) {
	const perPage = 25
	page, err := v.handler.List(v.ctx, v.Client, after, perPage+1) // one more, to see whether there's a next page
	if err != nil {
		return nil, err
	}
	if after == p.Find && after != "" { // List leaves out its argument itself
		hook, err := v.handler.Read(v.ctx, v.Client, after)
		if e, ok := errors.AsType[*webhookcfg.Error](err); err != nil && (!ok || e.Status >= http.StatusInternalServerError) {
			return nil, err // the others only mean that the start of an identifier isn't one itself
		}
		if err == nil && (hook.Source == webhookcfg.SourceOverride || hook.Source == webhookcfg.SourceOff) {
			page.Overrides = slices.Concat([]webhookcfg.Override{{Entity: after, Webhook: hook}}, page.Overrides)
		}
	}
	p.Hook, p.Next = readDeliveries(v, "", page.Base), page.Next
	for i, o := range page.Overrides {
		if !strings.HasPrefix(o.Entity, p.Find) {
			p.Next = ""
			return page.Overrides[:i], nil
		}
		if i == perPage {
			p.Next = page.Overrides[i-1].Entity
			return page.Overrides[:i], nil
		}
	}
	return page.Overrides, nil
}

// findTrouble collects the webhooks on the page whose deliveries fail or were stopped. It
// doesn't look at other pages, since a client can have any number of them.
func (p *overviewPage) findTrouble() {
	const atMost = 5
	for _, r := range slices.Concat([]row{{"", p.Hook}}, p.Rows) {
		switch {
		case r.Hook.State != "failing" && r.Hook.State != "stopped":
		case len(p.Trouble) == atMost:
			p.MoreTrouble++
		default:
			p.Trouble = append(p.Trouble, r)
		}
	}
}

// overviewTexts are the words of the overview.
var overviewTexts = map[string]string{
	"base.title":    "Default",
	"base.change":   "Change",
	"base.set":      "Set a default",
	"list.title":    "Entities with a setting of their own",
	"list.find":     "Find an entity by its ID, or the start of it",
	"list.button":   "Find",
	"list.id":       "Entity ID",
	"list.none":     "No entity has a setting of its own.",
	"list.no":       "No entity with a setting of its own has an ID that starts like this.",
	"list.open":     "Open the entity with exactly this ID",
	"list.next":     "Next page",
	"list.first":    "First page",
	"one.title":     "Set the webhook of one entity",
	"off":           "Off",
	"trouble.title": "What is wrong",
	"trouble.base":  "Default",
	"trouble.rows":  "Others in the list below: %d.",
	"trouble.page":  "This is about the default and the webhooks on this page.",
	"trouble.none":  "No failing deliveries are known for the default and the webhooks on this page.",
}
