package portal

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// allPage shows the base, and the overrides that a change of all would drop.
type allPage struct {
	*frame
	Hook    hookView // the base
	Dropped dropped
	Plan    plan // of sending again, if somebody has just repaired the base
	// What a person typed: a URL, and the word that confirms a set or an unset.
	URL, Confirm, ConfirmUnset string
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

// showAll shows the base, with the form that sets it.
func showAll(v *visit) (any, error) {
	p, err := readAll(v)
	if err != nil {
		return nil, err
	}
	p.Confirm = v.typed("confirm")
	return p, nil
}

// showUnsetAll is showAll for the form that unsets all.
func showUnsetAll(v *visit) (any, error) {
	p, err := readAll(v)
	if err != nil {
		return nil, err
	}
	p.ConfirmUnset = v.typed("confirm")
	return p, nil
}

func readAll(v *visit) (*allPage, error) {
	const maxCount, maxPages = 1000, 20 // a page can be short of its limit, or empty
	p := &allPage{frame: v.about("all", "all.title", ""), URL: v.typed("url")}
	page, err := v.handler.List(v.ctx, v.Client, "", maxCount)
	base := page.Base
	p.Dropped.add(page.Overrides)
	for n := 1; err == nil && page.Next != "" && p.Dropped.Count() < maxCount && n < maxPages; n++ {
		page, err = v.handler.List(v.ctx, v.Client, page.Next, maxCount-p.Dropped.Count())
		p.Dropped.add(page.Overrides)
	}
	p.Dropped.IsMore = page.Next != ""
	if err != nil {
		return nil, err
	}
	p.Hook = readDeliveries(v, "", base) // after the list, since it can take all the time
	if form, ok := v.cause(); ok && form.repairs && v.Options.Notifications != nil {
		p.Plan, _ = readPlan(v, sent.Selection{Scope: webhookcfg.All()}) // the page is useful without it
	}
	return p, nil
}

// setAll sets the webhook of all entities.
func setAll(v *visit) error {
	scope, err := allScope(v)
	if err != nil {
		return err
	}
	return v.handler.Set(v.ctx, v.Client, scope, v.typed("url"))
}

// unsetAll leaves all entities without a webhook.
func unsetAll(v *visit) error {
	scope, err := allScope(v)
	if err != nil {
		return err
	}
	return v.handler.Unset(v.ctx, v.Client, scope)
}

// allScope returns the scope of all entities, if the person typed the word that confirms it.
func allScope(v *visit) (webhookcfg.Scope, error) {
	switch {
	case v.Options.OneOnly:
		return webhookcfg.Scope{}, problem{status: http.StatusForbidden, key: "error.all_refused"}
	case v.typed("confirm") != "all":
		return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.confirm"}
	}
	return webhookcfg.All(), nil
}

// allTexts are the words of the page of all entities, and of its forms.
var allTexts = map[string]string{
	"all.title":         "Default for all entities",
	"all.set":           "Set for all entities",
	"all.remove":        "Remove everything",
	"all.remove-why":    "Removes the default and the settings of single entities. From then on, no notifications are sent at all.",
	"all.count":         "This also removes the settings of single entities: %d have their own. There is no way back.",
	"all.more":          "This also removes the settings of single entities: at least %d have their own. There is no way back.",
	"all.maybe":         "This also removes the settings of single entities, if any have their own. There is no way back.",
	"all.others":        "and %d more",
	"all.at-least":      "and at least %d more",
	"all.word":          "Type the word all to confirm",
	"done.all":          "The default is set for all entities.",
	"done.unset-all":    "The webhooks of all entities are removed.",
	"error.confirm":     "Nothing was changed. To reach all entities, type the word all.",
	"error.all_refused": "All entities at once can't be changed here. Nothing was changed. Set each entity by itself.",
}
