package portal

import (
	"cmp"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

//go:embed assets
var assets embed.FS

// templates are those of the pages, by name. Each has the layout and the parts that pages share.
var templates = func() map[string]*template.Template {
	parts := template.Must(template.ParseFS(assets, "assets/parts/*.html"))
	files, err := fs.Glob(assets, "assets/pages/*.html")
	if err != nil {
		panic(err) // can't happen: the pattern is valid
	}
	pages := make(map[string]*template.Template, len(files))
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		pages[name] = template.Must(template.Must(parts.Clone()).ParseFS(assets, file))
	}
	return pages
}()

// row is an override in a list.
type row struct {
	ID   string
	Hook hookView
}

// hookView is a webhook as the pages show it.
type hookView struct {
	webhookcfg.Webhook
	State, Reason            string // keys of texts; State is "" if no deliveries are shown
	LastSuccess, LastFailure time.Time
	IsShown                  bool // with its path and query
}

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

// entity shows the webhook in effect for one entity.
func (v *visit) entity() error {
	id := v.AskedID()
	hook, err := v.handler.Read(v.ctx, v.Client, id)
	if err != nil {
		return err
	}
	v.Template, v.ID, v.Hook = "entity", id, v.hook(id, hook)
	v.showRecent(webhookcfg.Entity(id))
	return nil
}

// setForm shows the form again with which a person sets the webhook of an entity. The overview has
// one, too, so it also gets those with an identifier that isn't one.
func (v *visit) setForm() error {
	if err := v.entity(); err == nil || v.ctx.Err() != nil {
		return err // there's no time for another page either
	}
	v.ID = ""
	return v.overview()
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

// key shows the signing key of the webhook in effect for an entity, or of the base.
func (v *visit) key() error {
	if v.Options.SigningKey == nil {
		return notFound
	}
	id := v.AskedID()
	hook, err := v.webhook(id)
	if err != nil {
		return err
	}
	v.Template, v.Title, v.ID, v.Hook = "key", "key.title", id, hookView{Webhook: hook}
	return v.host("Options.SigningKey", hook.URL, func() (err error) {
		v.Key, err = v.Options.SigningKey(v.ctx, v.Client, id, hook)
		if err == nil && v.Key == "" && !hook.URL.IsZero() {
			err = errors.New("there is no key")
		}
		return err
	})
}

// webhook returns the webhook in effect for an entity, or the base if the identifier is "".
func (v *visit) webhook(id string) (webhookcfg.Webhook, error) {
	if id != "" {
		return v.handler.Read(v.ctx, v.Client, id)
	}
	page, err := v.handler.List(v.ctx, v.Client, "", 1)
	return page.Base, err
}

// hook returns a webhook as the pages show it, with its deliveries. If their state can't be
// found out once, the page doesn't wait for it again.
func (v *visit) hook(entity string, hook webhookcfg.Webhook) hookView {
	shown := hookView{Webhook: hook, IsShown: v.query.Has("show")}
	if v.Parent.DeliveryStatus == nil || hook.URL.IsZero() {
		return shown
	}
	var d webhookcfg.DeliveryStatus
	if !v.isUnknown {
		var err error
		d, err = v.handler.DeliveryStatus(v.ctx, v.Client, entity, hook)
		v.isUnknown = err != nil
	}
	if v.isUnknown {
		shown.State = "unknown"
		return shown
	}
	shown.State, shown.Reason = cmp.Or(d.State, "none"), d.Reason
	shown.LastSuccess, shown.LastFailure = d.LastSuccess, d.LastFailure
	return shown
}
