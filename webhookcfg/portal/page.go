package portal

import (
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// frame is what every page has around its content. The struct that a page shows embeds it, so that its
// template can read it. Options are the portal's, and Parent has those of the handler.
type frame struct {
	*portal
	*words
	Status int
	// Template names the file of the page. A page that links to itself has the same name.
	Template              string
	Title                 string // the key of a text
	ID                    string // of the entity that the page is about; "" if it isn't about one
	Person                string // who is signed in; "" if nobody is
	Done, Problem, Detail string
	IsRepaired            bool // the person may have just repaired a webhook
}

// about says which page is shown. It's the last one to say so that counts.
func (f *frame) about(template, title, id string) *frame {
	f.Template, f.Title, f.ID = template, title, id
	return f
}

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

// show reads what a page shows: a struct for the template that the page's frame names.
type show func(*visit) (any, error)

// page serves what a page shows.
func page(read show) func(*visit) error {
	return func(v *visit) error {
		shown, err := read(v)
		if err != nil {
			return err
		}
		if form, ok := v.cause(); ok {
			v.Done, v.IsRepaired = form.done, form.repairs
			http.SetCookie(v.w, newCookie(noticeCookie, "", -1))
		}
		v.write(shown)
		return nil
	}
}

// cause returns the form whose effect the page shows, if a notice says so.
func (v *visit) cause() (form, bool) {
	if v.r.Method != http.MethodGet {
		return form{}, false
	}
	address := entityAddress(v.page, v.query.Get("id"))
	if message := v.query["message"]; message != nil {
		address = pageAddress(v.page, url.Values{"message": message})
	}
	f := v.routes[noticeOf(v.r, v.Client, address)].form
	return f, f.done != ""
}

// send does what a form asks for, and leads to the page that shows its effect. If that fails, it
// shows the form again, with the reason and the fields that the person typed.
func send(v *visit) error {
	form := v.routes[v.page].form
	err := v.checkClient(v.Client)
	if err == nil {
		err = form.do(v)
	}
	if err != nil {
		e, ok := errors.AsType[*webhookcfg.Error](err)
		v.isUnsure = ok && e.Status >= http.StatusInternalServerError && !form.isTest
		return v.again(err, form.again)
	}
	if form.effect == nil {
		v.Done = form.done
		return page(form.again)(v)
	}
	address := form.effect(&v.input)
	http.SetCookie(v.w, newNotice(v.page, v.Client, address))
	return v.w.redirect(address)
}

// again shows a form again, with the reason. If its page can't be shown, the person gets only the
// reason and the form, and no page with other forms that look alike.
func (v *visit) again(reason error, form show) error {
	v.fail(reason)
	if page(form)(v) != nil {
		return reason
	}
	return nil
}

// frameTexts are the words of all pages.
var frameTexts = map[string]string{
	"lang":          "en",
	"title":         "Webhooks",
	"back":          "All webhooks",
	"signed-in":     "Signed in as",
	"signed-in.for": "for",
	"sign-out":      "Sign out",
}
