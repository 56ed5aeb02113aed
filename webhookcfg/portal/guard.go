package portal

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/bodytimer"
	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/source"
)

// ServeHTTP implements [http.Handler].
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bodytimer.Serve(http.HandlerFunc(p.guard), p.Parent.Timeout, w, r)
}

// guard guards every request in the same way, whether or not its page exists and its person
// is signed in.
func (p *portal) guard(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), p.Parent.Timeout)
	defer cancel()
	v := p.newVisit(ctx, w, r)
	deadline, _ := ctx.Deadline()
	v.ctx, cancel = context.WithTimeout(v.ctx, time.Until(deadline)*7/8)
	defer cancel()
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
	page, err := v.readQuery(v.r.URL.RawQuery)
	if v.page = page; err != nil {
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
	addr, _ := source.Of(v.ctx)
	args := []any{"source", addr, "origin", redact.Presented(v.r.Header.Get("Origin")), "host", redact.Presented(v.r.Host)}
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" {
		v.logAt(slog.LevelWarn, "portal: refused a form that another site sent", append(args, "site", redact.Presented(site))...)
	} else {
		v.logAt(slog.LevelWarn, "portal: refused a form because its origin isn't the host: if it's the portal's own, let your proxy pass on the field Host (in nginx: proxy_set_header Host $http_host; next to it, a location also needs proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for)", args...)
	}
	return problem{status: http.StatusForbidden, key: "error.cross_origin"}
}

// serve responds to a request, or returns the reason why it can't.
func (v *visit) serve() error {
	route, ok := v.routes[v.page]
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
		if err := v.receive(route.form.fields); err != nil {
			return err
		}
		v.isAgain = !route.isPublic
	} else if err := v.checkQuery(route.query, v.fields); err != nil {
		return err
	}
	if !route.isPublic {
		if err := v.enter(); err != nil {
			return err
		}
	}
	return serve(v)
}

// receive receives the form of a POST.
func (v *visit) receive(own []string) error {
	if len(v.query) > 0 {
		return oddForm
	}
	mediaType, _, _ := strings.Cut(v.r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return problem{status: http.StatusUnsupportedMediaType, key: "error.unsupported_media_type"}
	}
	if v.sent.PostForm != nil {
		v.log("portal: a middleware has read the form before: leave that to the portal", func() []any { return nil })
		return problem{status: http.StatusInternalServerError, key: "error.server_error"}
	}
	tooLarge := problem{status: http.StatusRequestEntityTooLarge, key: "error.request_too_large"}
	if v.sent.ContentLength > v.Parent.BodyLimit {
		return tooLarge // before a 100 response asks for the body
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.sent.Body, v.Parent.BodyLimit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	} else if err != nil || int64(len(body)) < v.sent.ContentLength { // a middleware can cut it off, even within a field
		return problem{status: http.StatusBadRequest, key: "error.lost_form"}
	}
	return v.input.readForm(string(body), own)
}
