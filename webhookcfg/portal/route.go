package portal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/internal/bodytimer"
	"example.com/go-webhookcfg/webhookcfg"
)

// route says what a path serves. A POST needs a function of its own, or it gets 405.
type route struct {
	get, post func(*visit) error
	isPublic  bool // nobody has to be signed in
}

func routes() map[string]route {
	return map[string]route{
		"":          {get: page((*visit).overview)},
		"entity":    {get: page((*visit).entity)},
		"all":       {get: page((*visit).all), post: change((*visit).setAll, (*visit).all)},
		"key":       {get: page((*visit).key)},
		"set":       {get: page((*visit).entityForm), post: change((*visit).set, (*visit).entityForm)},
		"unset":     {get: page((*visit).entityForm), post: change((*visit).unset, (*visit).entityForm)},
		"test":      {get: page((*visit).testForm), post: change((*visit).test, (*visit).testForm)},
		"unset-all": {get: page((*visit).all), post: change((*visit).unsetAll, (*visit).all)},
		"sign-in":   {get: (*visit).toOverview, post: (*visit).signIn, isPublic: true},
		"sign-out":  {get: (*visit).toOverview, post: (*visit).signOut, isPublic: true},
		"style.css": {get: (*visit).style, isPublic: true},
	}
}

// addSlash serves the portal's path without its slash, where some routers serve the portal,
// too. The addresses in the pages are relative, so the browser needs the slash: it would send
// an id and a secret to "/sign-in" of the host.
var addSlash = route{isPublic: true, get: func(v *visit) error {
	sent := v.sentURL()
	name := lastSegment(sent)
	if name == "" {
		return notFound
	}
	location := "./" + name + "/"
	if sent.RawQuery != "" {
		location += "?" + sent.RawQuery
	}
	return v.redirect(location)
}}

// isBelowSlash reports whether the browser resolves the addresses in a page below the portal.
// For the browser, "%2f" isn't a slash.
func (v *visit) isBelowSlash() bool {
	name, err := url.PathUnescape(lastSegment(v.sentURL()))
	return err == nil && name == v.Path
}

// lastSegment returns what follows the last slash of a path, as the browser sent it.
func lastSegment(u *url.URL) string {
	path := u.EscapedPath()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// sentURL returns the URL of the request before a router or [http.StripPrefix] changed it.
func (v *visit) sentURL() *url.URL {
	if sent, err := url.ParseRequestURI(v.r.RequestURI); err == nil && sent.Path != "" {
		return sent
	}
	return v.r.URL // some adapters of other servers don't set RequestURI
}

// page serves the page that show fills in.
func page(show func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		if err := show(v); err != nil {
			return err
		}
		if v.r.Method == http.MethodGet {
			v.takeNotice()
		}
		v.write()
		return nil
	}
}

// change makes a change, and leads to the page that shows its effect. If the change fails, it
// shows the form again, with the reason and the fields that the person typed.
func change(make, form func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		err := v.checkClient()
		if err == nil {
			err = make(v)
		}
		if err != nil {
			e, ok := errors.AsType[*webhookcfg.Error](err)
			v.IsUnsure = ok && e.Status >= http.StatusInternalServerError && v.Path != "test"
			v.fail(err)
			return page(form)(v)
		}
		location := v.location("all", "")
		if id := v.Typed("id"); id != "" {
			location = v.location("entity", id)
		}
		v.leaveNotice(v.Path, location)
		return v.redirect(location)
	}
}

// checkClient refuses a form that was made for another client, for example before the person
// changed the account in another tab. They have to confirm a change of all again.
func (v *visit) checkClient() error {
	if v.Typed("client") == v.Client {
		return nil
	}
	v.form.Del("confirm")
	return problem{status: http.StatusConflict, key: "error.other_client"}
}

// ServeHTTP implements [http.Handler].
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bodytimer.Serve(http.HandlerFunc(p.guard), p.Parent.Timeout, w, r)
}

// guard guards every request in the same way, whether or not its path exists and its person
// is signed in.
func (p *portal) guard(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), p.Parent.Timeout)
	defer cancel()
	v := p.newVisit(ctx, w, r)
	defer func() {
		if value := recover(); value != nil {
			v.recover(v.panicked("a page", value))
		}
	}()
	if err := v.check(); err != nil {
		v.gate(err)
	}
}

// check checks what all requests have in common, and then serves the page.
func (v *visit) check() error {
	if err := v.checkOrigin(); err != nil {
		return err
	}
	if err := v.readQuery(); err != nil {
		return err
	}
	return v.serve()
}

// checkOrigin refuses the forms of other sites. The log says so, because a proxy that changes
// the host makes the portal's own forms look like that.
func (v *visit) checkOrigin() error {
	if v.origins.Check(v.r) == nil {
		return nil
	}
	source, _ := webhookcfg.SourceAddr(v.ctx)
	args := []any{"source", source, "origin", shortened(v.r.Header.Get("Origin")), "host", shortened(v.r.Host)}
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" {
		v.logAt(slog.LevelWarn, "portal: refused a form that another site sent", append(args, "site", shortened(site))...)
	} else {
		v.logAt(slog.LevelWarn, "portal: refused a form because its origin isn't the host: if it's the portal's own, let your proxy pass on the field Host (in nginx: proxy_set_header Host $http_host)", args...)
	}
	return problem{status: http.StatusForbidden, key: "error.cross_origin"}
}

// shortened returns the start of a header field for the log.
func shortened(field string) string { return strings.ToValidUTF8(field[:min(len(field), 128)], "") }

// serve responds to a request, or returns the reason why it can't.
func (v *visit) serve() error {
	route, ok := v.routes[v.Path]
	if !v.isBelowSlash() {
		route, ok = addSlash, v.Path == ""
	}
	if !ok {
		return notFound
	}
	serve, isPost := route.get, false
	switch v.r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		serve, isPost = route.post, true
	default:
		serve = nil
	}
	if serve == nil {
		v.w.Header().Set("Allow", route.allow())
		return problem{status: http.StatusMethodNotAllowed, key: "error.method_not_allowed"}
	}
	if isPost {
		if err := v.readForm(); err != nil {
			return err
		}
		v.IsAgain = !route.isPublic
	}
	if !route.isPublic {
		if err := v.enter(); err != nil {
			return err
		}
	}
	return serve(v)
}

func (r route) allow() string {
	if r.post == nil {
		return "GET, HEAD"
	}
	return "GET, HEAD, POST"
}

// maxQuery is the length of the longest query in bytes. The pages need much less. Each byte of
// a query costs us memory and time, even if nobody is signed in.
const maxQuery = 4 << 10

// readQuery parses the query, once for all pages.
func (v *visit) readQuery() error {
	if len(v.r.URL.RawQuery) > maxQuery {
		return problem{status: http.StatusRequestURITooLong, key: "error.long_address"}
	}
	query, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return problem{status: http.StatusBadRequest, key: "error.invalid_request"}
	}
	v.query = query
	return nil
}

// readForm reads the form of a POST.
func (v *visit) readForm() error {
	mediaType, _, _ := strings.Cut(v.r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return problem{status: http.StatusUnsupportedMediaType, key: "error.unsupported_media_type"}
	}
	tooLarge := problem{status: http.StatusRequestEntityTooLarge, key: "error.request_too_large"}
	if v.r.ContentLength > v.Parent.BodyLimit {
		return tooLarge // before a 100 response asks for the body
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, v.Parent.BodyLimit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	} else if err != nil {
		return problem{status: http.StatusBadRequest, key: "error.lost_form"}
	}
	if v.form, err = url.ParseQuery(string(body)); err != nil {
		return problem{status: http.StatusBadRequest, key: "error.invalid_request"}
	}
	return nil
}

// Typed returns the text that a person typed into a field.
func (v *visit) Typed(field string) string { return v.form.Get(field) }

// redirect responds to a change with the page that shows its effect. The location is
// relative, because a proxy or [http.StripPrefix] may have removed a prefix that
// [http.Redirect] doesn't know.
func (v *visit) redirect(location string) error {
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

func (v *visit) toOverview() error { return v.redirect("./") }

// style serves the stylesheet.
func (v *visit) style() error {
	style, _ := assets.ReadFile("assets/style.css") // embedded
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.Header().Set("Cache-Control", "max-age=300")
	_, _ = v.w.Write(style)
	return nil
}

// response is the ResponseWriter of a visit.
type response struct {
	http.ResponseWriter
	isSent bool // the header
}

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	w.isSent = w.isSent || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *response) Write(data []byte) (int, error) {
	w.isSent = true
	return w.ResponseWriter.Write(data)
}

// Unwrap lets an [http.ResponseController] find optional methods.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
