package portal

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// all shows the base, and the overrides that a change of all would drop.
func (v *visit) all() error {
	const maxCount, maxPages = 1000, 20 // a page can be short of its limit, or empty
	v.Template, v.Title = "all", "all.title"
	page, err := v.handler.List(v.ctx, v.Client, "", maxCount)
	base := page.Base
	v.Dropped.add(page.Overrides)
	for n := 1; err == nil && page.Next != "" && v.Dropped.Count() < maxCount && n < maxPages; n++ {
		page, err = v.handler.List(v.ctx, v.Client, page.Next, maxCount-v.Dropped.Count())
		v.Dropped.add(page.Overrides)
	}
	v.Dropped.IsMore = page.Next != ""
	if err != nil {
		return err
	}
	v.Hook = v.hook("", base) // last, since it can take all the time
	return nil
}

// showMissing finds out how many notifications are missing once the base is repaired. The page of
// an entity has found that out anyway.
func (v *visit) showMissing() {
	if v.Template == "all" && v.IsRepaired && v.Parent.Notifications != nil {
		_ = v.plan(webhookcfg.Selection{Scope: webhookcfg.All()}) // the page is useful without it
	}
}

// dropped are the overrides that a change of all drops. Nothing brings them back, so the page has
// the first ones by name before that.
type dropped struct {
	First  []string
	Others int  // that aren't in First
	IsMore bool // there are perhaps more than First and Others
}

// Count returns how many there are.
func (d dropped) Count() int { return len(d.First) + d.Others }

func (d *dropped) add(overrides []webhookcfg.Override) {
	const named = 10
	for _, o := range overrides[:min(len(overrides), named-len(d.First))] {
		d.First = append(d.First, o.Entity)
		overrides = overrides[1:]
	}
	d.Others += len(overrides)
}

// setAll sets the webhook of all entities.
func (v *visit) setAll() error {
	scope, err := v.allScope()
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typed("url"))
}

// unsetAll leaves all entities without a webhook.
func (v *visit) unsetAll() error {
	scope, err := v.allScope()
	if err != nil {
		return err
	}
	return v.handler.Unset(v.ctx, v.Client, scope)
}

// allScope returns the scope of all entities, if the person typed the word that confirms it.
func (v *visit) allScope() (webhookcfg.Scope, error) {
	switch {
	case v.Options.OneOnly:
		return webhookcfg.Scope{}, problem{status: http.StatusForbidden, key: "error.all_refused"}
	case v.typed("confirm") != "all":
		return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.confirm"}
	}
	return webhookcfg.All(), nil
}
