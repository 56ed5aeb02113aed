package portal

import (
	"bytes"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// fail puts the reason on the page. Each error code of the handler has its own text. For a
// refusal of the host's, the host has.
func (v *visit) fail(err error) {
	p, ok := errors.AsType[problem](err)
	if e, isError := errors.AsType[*webhookcfg.Error](err); isError {
		p = problem{status: e.Status, key: "error." + e.Code, wait: e.RetryAfter}
		if e.Status == http.StatusBadRequest && e.Code != "webhook_unreachable" {
			p.detail = e.Description // names the rule
		}
		if slices.Contains(v.Parent.Refusals, webhookcfg.Refusal{Code: e.Code, Description: e.Description}) {
			p.key, p.detail = "error.refused", v.translated("refusal."+e.Code, e.Description)
		}
	} else if !ok {
		p = problem{status: http.StatusInternalServerError, key: "error.server_error"}
	}
	if p.status == http.StatusUnauthorized {
		p.status = http.StatusForbidden // a 401 needs a challenge, and browsers would open a prompt
	}
	v.Status, v.Detail = p.status, p.detail
	if v.isUnsure {
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

// gate responds with the reason only, and keeps the fields that the person typed.
func (v *visit) gate(err error) {
	v.fail(err)
	_, asks := errors.AsType[askToSignIn](err)
	if asks {
		v.Person = "" // a right secret doesn't start a session if the sign-in fails after it
	}
	if asks && v.Options.SignIn != nil {
		http.SetCookie(v.w, newCookie(noticeCookie, asked, 0))
	}
	route := v.routes[v.page]
	v.write(&gatePage{
		frame:        v.about("gate", "title", ""), // an identifier can be whatever a link says
		AsksToSignIn: asks, IsAgain: v.isAgain, IsUnsure: v.isUnsure,
		Page: v.page, Kept: v.kept(route, v.isAgain), Button: route.form.button,
		AskedID: v.asked("id"), URL: v.typed("url"), Username: v.typed("username"),
	})
}

// write writes a page.
func (v *visit) write(shown any) {
	var content, whole bytes.Buffer
	parts := templates[v.Template]
	if err := parts.ExecuteTemplate(&content, "main", shown); err != nil {
		panic(err) // can't happen: the tests execute the templates with every page
	}
	page := Page{Status: v.Status, Title: v.T(v.Title), Lang: v.T("lang"), Content: template.HTML(content.String())}
	if v.Options.Layout != nil && !v.isPlain {
		v.layout(page)
		return
	}
	if err := parts.ExecuteTemplate(&whole, "layout", page); err != nil {
		panic(err)
	}
	v.w.WriteHeader(page.Status)
	_, _ = v.w.Write(whole.Bytes()) // an error means that the browser disconnected
}

// layout lets the host write the page. If that fails, the person gets a plain page, without the
// fields of the header that the layout has set for its own.
func (v *visit) layout(page Page) {
	header := v.w.Header().Clone()
	err := v.call("Options.Layout", func() error {
		v.Options.Layout(v.w, v.r, page)
		if !v.w.isSent {
			return errors.New("it has written nothing") // which would be a 200
		}
		return nil
	})
	if err != nil {
		clear(v.w.Header())
		maps.Copy(v.w.Header(), header)
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
	v.gate(err)
}

// contentPolicy is the Content-Security-Policy.
const contentPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// response is the ResponseWriter of a visit.
type response struct {
	http.ResponseWriter
	isSent bool // the header
}

// newResponse returns a response with the header fields that all have.
func newResponse(w http.ResponseWriter) *response {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// With no-referrer, browsers send "Origin: null" with the page's own forms.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	return &response{ResponseWriter: w}
}

// redirect leads to another page. [http.Redirect] would make its address absolute, with a path that
// a proxy may have changed.
func (w *response) redirect(address string) error {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
	return nil
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

// FlushError lets an [http.ResponseController] flush, which sends the header.
func (w *response) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.isSent = w.isSent || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Unwrap lets an [http.ResponseController] find optional methods.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// style serves the stylesheet.
func style(v *visit) error {
	style, _ := assets.ReadFile("assets/style.css") // embedded
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.Header().Set("Cache-Control", "private, max-age=300") // some shared caches ignore queries
	_, _ = v.w.Write(style)
	return nil
}
