package portal

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.ParseFS(assets, "assets/*.html"))

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

// T returns a text in the person's language. If the host's function fails once, the rest of
// the page is English.
func (v *visit) T(key string, args ...any) string {
	text := ""
	if v.Options.Text != nil && !v.isEnglish {
		v.isEnglish = v.host("Options.Text", egress.URL{}, func() error {
			text = v.Options.Text(v.r, key)
			return nil
		}) != nil
	}
	return format(cmp.Or(text, texts[key]), args)
}

// Again returns the text of a field, if the form was sent to this path.
func (v *visit) Again(path, field string) string {
	if v.Path != path {
		return ""
	}
	return v.Typed(field)
}

// AskedID returns the identifier in the form or in the query, so that it survives a sign-in.
func (v *visit) AskedID() string { return cmp.Or(v.Typed("id"), v.query.Get("id")) }

// Time formats a time so that people can read it in any language.
func (*visit) Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// location returns the address of a page, relative to the others. If the identifier is too
// long for an address, which only your own syntax allows, it's the address of the overview.
func (*visit) location(path, id string) string {
	query := ""
	if id != "" {
		query = "?" + url.Values{"id": {id}}.Encode()
	}
	if len(query) > maxQuery {
		return "./"
	}
	return cmp.Or(path, "./") + query
}

// overview shows the base and the overrides. After a search, it shows only overrides whose
// identifiers start with the text.
func (v *visit) overview() error {
	const perPage = 25
	v.Template, v.Find, v.After = "overview", v.query.Get("find"), v.query.Get("after")
	after := cmp.Or(v.After, v.Find)
	page, err := v.handler.List(v.ctx, v.Client, after, perPage+1) // one more, to see whether there's a next page
	if err != nil {
		return err
	}
	if after == v.Find && after != "" { // List leaves out its argument itself
		if hook, err := v.handler.Read(v.ctx, v.Client, after); err == nil && (hook.Source == webhookcfg.SourceOverride || hook.Source == webhookcfg.SourceOff) {
			page.Overrides = slices.Insert(page.Overrides, 0, webhookcfg.Override{Entity: after, Webhook: hook})
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
	return nil
}

// entityForm shows the form again that a person sent for an entity.
func (v *visit) entityForm() error {
	if v.entity() == nil {
		return nil
	}
	return v.overview()
}

// testForm shows the page from which a person sent a test.
func (v *visit) testForm() error {
	if v.AskedID() == "" {
		return v.all()
	}
	return v.entity()
}

// all shows the base, and how many overrides a change of all would drop.
func (v *visit) all() error {
	const atMost = 1000
	v.Template, v.Title = "all", "all.title"
	for after := ""; ; {
		page, err := v.handler.List(v.ctx, v.Client, after, atMost)
		if err != nil {
			return err
		}
		if after == "" {
			v.Hook = v.hook("", page.Base)
		}
		v.Count += len(page.Overrides)
		after = page.Next
		if v.Count > atMost || v.Count == atMost && after != "" {
			v.Count, v.IsMore = atMost, true
			return nil
		}
		if after == "" {
			return nil
		}
	}
}

// key shows the signing key.
func (v *visit) key() error {
	if v.Options.SigningKey == nil {
		return notFound
	}
	v.Template, v.Title = "key", "key.title"
	return v.host("Options.SigningKey", egress.URL{}, func() (err error) {
		v.Key, err = v.Options.SigningKey(v.ctx, v.Client)
		if err == nil && v.Key == "" {
			err = errors.New("there is no key")
		}
		return err
	})
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

// problem says why a person doesn't get the page that they asked for.
type problem struct {
	status int
	key    string // of the text
	detail string
	wait   time.Duration
}

func (p problem) Error() string { return p.key }

var (
	notFound    = problem{status: http.StatusNotFound, key: "error.not_found"}
	unavailable = problem{status: http.StatusServiceUnavailable, key: "error.temporarily_unavailable"}
)

// fail puts the reason on the page. Each error code of the handler has its own text.
func (v *visit) fail(err error) {
	p, ok := errors.AsType[problem](err)
	if e, isError := errors.AsType[*webhookcfg.Error](err); isError {
		p = problem{status: e.Status, key: "error." + e.Code, wait: e.RetryAfter}
		if e.Status == http.StatusBadRequest && e.Code != "webhook_unreachable" {
			p.detail = e.Description // names the rule
		}
	} else if !ok {
		p = problem{status: http.StatusInternalServerError, key: "error.server_error"}
	}
	if p.status == http.StatusUnauthorized {
		p.status = http.StatusForbidden // a 401 needs a challenge, and browsers would open a prompt
	}
	v.Status, v.Detail = p.status, p.detail
	if v.IsUnsure {
		v.Detail = v.T("error.unsure")
	}
	if p.key != "" {
		v.Problem = v.T(p.key)
	}
	if p.wait > 0 {
		seconds := int64((p.wait-1)/time.Second) + 1 // rounded up
		v.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		if p.status == http.StatusTooManyRequests {
			v.Detail = v.T("error.wait", seconds)
		}
	}
}

// askToSignIn is why a person has to sign in first.
type askToSignIn struct{ error }

func (e askToSignIn) Unwrap() error { return e.error }

// gate responds with the reason only, and keeps the fields that the person typed.
func (v *visit) gate(err error) {
	v.fail(err)
	_, v.AsksToSignIn = errors.AsType[askToSignIn](err)
	if v.AsksToSignIn {
		v.Person = "" // a right secret doesn't start a session if the sign-in fails after it
	}
	if v.AsksToSignIn && v.Options.SignIn != nil {
		http.SetCookie(v.w, newCookie(noticeCookie, asked, 0))
	}
	v.Template, v.Title = "gate", "title"
	v.write()
}

// setHeader sets the header fields of every response.
func (v *visit) setHeader() {
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", v.policy)
	// With no-referrer, browsers send "Origin: null" with the page's own forms.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}

// write writes the page.
func (v *visit) write() {
	var content, whole bytes.Buffer
	if err := templates.ExecuteTemplate(&content, "main", v); err != nil {
		panic(err) // can't happen: the tests execute the templates with every page
	}
	page := Page{Status: v.Status, Title: v.T(v.Title), Lang: v.T("lang"), Content: template.HTML(content.String())}
	if v.Options.Layout != nil && !v.isPlain {
		v.layout(page)
		return
	}
	if err := templates.ExecuteTemplate(&whole, "layout", page); err != nil {
		panic(err)
	}
	v.w.WriteHeader(page.Status)
	_, _ = v.w.Write(whole.Bytes()) // an error means that the browser disconnected
}

// layout lets the host write the page. If that fails, the person gets a plain page.
func (v *visit) layout(page Page) {
	err := v.host("Options.Layout", egress.URL{}, func() error {
		v.Options.Layout(v.w, v.r, page)
		return nil
	})
	if err != nil {
		v.recover(err)
	}
}

// recover responds to a request whose response has failed. If its header has been sent, all
// that's left is to break the connection.
func (v *visit) recover(err error) {
	if v.w.isSent {
		panic(http.ErrAbortHandler)
	}
	v.isPlain = true
	for _, field := range []string{"Content-Length", "Content-Encoding"} {
		v.w.Header().Del(field) // of the page that the layout meant to write
	}
	v.setHeader()
	v.gate(err)
}
