package portal

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// contentPolicy returns the Content-Security-Policy. By default, nobody can frame the pages.
func contentPolicy(frameAncestors string) string {
	return "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + cmp.Or(frameAncestors, "'none'")
}

// setHeader sets the header fields of every response.
func (v *visit) setHeader() {
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", v.policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// With no-referrer, browsers send "Origin: null" with the page's own forms.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
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
	err := v.call("Options.Layout", egress.URL{}, func() error {
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

// redirect leads to another page. [http.Redirect] would make its address absolute, with a path that
// a proxy may have changed.
func (v *visit) redirect(address string) error {
	v.w.Header().Set("Location", address)
	v.w.WriteHeader(http.StatusSeeOther)
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

// FlushError lets an [http.ResponseController] flush, which sends the header.
func (w *response) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.isSent = w.isSent || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Unwrap lets an [http.ResponseController] find optional methods.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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

// style serves the stylesheet.
func style(v *visit) error {
	style, _ := assets.ReadFile("assets/style.css") // embedded
	v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
	v.w.Header().Set("Cache-Control", "private, max-age=300") // some shared caches ignore queries
	_, _ = v.w.Write(style)
	return nil
}
