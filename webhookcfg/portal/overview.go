package portal

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// overview shows the base and the overrides. After a search, it shows only overrides whose
// identifiers start with the text.
func (v *visit) overview() error {
	const perPage = 25
	v.Template, v.Find, v.After = "overview", strings.TrimSpace(v.query.Get("find")), v.query.Get("after")
	after := cmp.Or(v.After, v.Find)
	page, err := v.handler.List(v.ctx, v.Client, after, perPage+1) // one more, to see whether there's a next page
	if err != nil {
		return err
	}
	if after == v.Find && after != "" { // List leaves out its argument itself
		hook, err := v.handler.Read(v.ctx, v.Client, after)
		if e, ok := errors.AsType[*webhookcfg.Error](err); err != nil && (!ok || e.Status >= http.StatusInternalServerError) {
			return err // the others only mean that the start of an identifier isn't one itself
		}
		if err == nil && (hook.Source == webhookcfg.SourceOverride || hook.Source == webhookcfg.SourceOff) {
			page.Overrides = slices.Concat([]webhookcfg.Override{{Entity: after, Webhook: hook}}, page.Overrides)
		}
	}
	v.Hook, v.Next = v.hook("", page.Base), page.Next
	for i, o := range page.Overrides {
		if !strings.HasPrefix(o.Entity, v.Find) {
			v.Next = ""
			break
		}
		if i == perPage {
			v.Next = v.Rows[i-1].ID
			break
		}
		v.Rows = append(v.Rows, row{o.Entity, v.hook(o.Entity, o.Webhook)})
	}
	v.showTrouble()
	if after == "" {
		v.showRecent(webhookcfg.All())
	}
	return nil
}

// row is an override in a list.
type row struct {
	ID   string
	Hook hookView
}

// showTrouble collects the webhooks on the page whose deliveries fail or were stopped. It
// doesn't look at other pages, since a client can have any number of them.
func (v *visit) showTrouble() {
	const atMost = 5
	for _, t := range slices.Concat([]row{{"", v.Hook}}, v.Rows) {
		switch {
		case t.Hook.State != "failing" && t.Hook.State != "stopped":
		case len(v.Trouble) == atMost:
			v.MoreTrouble++
		default:
			v.Trouble = append(v.Trouble, trouble{t.ID, t.Hook})
		}
	}
	isPage := v.Find == "" && (v.Next != "" || v.After != "")
	v.IsPartial = isPage && v.Parent.DeliveryStatus != nil && !v.isUnknown
}

// trouble is a webhook whose deliveries fail.
type trouble struct {
	ID string // "" for the base
	hookView
}
