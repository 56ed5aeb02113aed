package portal

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// Again returns the text of a field, if the form was sent to this page, or tried.
func (v *visit) Again(page, field string) string {
	if v.Page != page && !(v.Page == "try" && page == "set") && !(v.Page == "try-all" && page == "all") {
		return ""
	}
	return v.Typed(field)
}

// AskedID returns the identifier in the form or in the query, so that it survives a sign-in.
func (v *visit) AskedID() string { return v.asked("id") }

func (v *visit) asked(field string) string { return cmp.Or(v.Typed(field), v.query.Get(field)) }

// Typed returns the text that a person typed into a field.
func (v *visit) Typed(field string) string { return v.form.Get(field) }

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
	v.query = copied(query)
	page, ok := v.query["page"]
	if len(page) > 1 {
		return problem{status: http.StatusBadRequest, key: "error.odd_address"}
	}
	if ok {
		v.Page = page[0]
		v.query.Del("page")
	}
	return nil
}

// copied returns fields whose values share no memory with what they were parsed from, because
// stores and events can keep them. Otherwise a short identifier keeps a whole form in memory, with
// the password beside it.
func copied(fields url.Values) url.Values {
	for _, values := range fields {
		for i, value := range values {
			values[i] = strings.Clone(value)
		}
	}
	return fields
}

// checkQuery refuses a query with a field of another page, such as the identifier of an
// entity at the page for all of them, and with two values for a field. An empty identifier is
// one that a link has lost, so it never means all, and neither does one under a name that is
// spelled in another way. Other fields don't matter: mail programs, for example, add their own to
// links.
func (v *visit) checkQuery(r route) error {
	for name := range v.query {
		if !slices.Contains(v.fields, name) && slices.Contains(v.fields, lettersOf(name)) {
			return problem{status: http.StatusBadRequest, key: "error.odd_address"}
		}
	}
	for _, field := range v.fields {
		if values, ok := v.query[field]; ok && (len(values) != 1 || !slices.Contains(r.query, field)) {
			return problem{status: http.StatusBadRequest, key: "error.odd_address"}
		} else if ok && field == "id" && values[0] == "" {
			return problem{status: http.StatusBadRequest, key: "error.no_id"}
		}
	}
	return nil
}

// lettersOf returns the letters in a name, in lower case.
func lettersOf(name string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// oddForm is why a form isn't one of the page's. An identifier that the form doesn't have, for
// example in the query, can mean that its sender meant only one entity.
var oddForm = problem{status: http.StatusBadRequest, key: "error.odd_form"}

// readForm reads the form of a POST. It has only fields of the page's own, each once.
func (v *visit) readForm(r route) error {
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
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return problem{status: http.StatusBadRequest, key: "error.invalid_request"}
	}
	for field, values := range form {
		if len(values) != 1 || !slices.Contains(r.form, field) {
			return oddForm
		}
	}
	v.form = copied(form)
	for _, field := range []string{"url", "confirm", "username"} {
		v.trim(field)
	}
	return nil
}

// trim removes the blanks around what a person typed into a field, since pasting and the keyboards
// of phones add some. The API never does that.
func (v *visit) trim(field string) {
	if v.form.Has(field) {
		v.form.Set(field, strings.Clone(strings.TrimSpace(v.Typed(field))))
	}
}

// trimID removes the blanks around an identifier. It keeps them if the host's syntax allows them,
// because the form of such an entity has them, too.
func (v *visit) trimID() {
	id, valid := v.Typed("id"), v.Parent.ValidEntityID
	if valid == nil || strings.TrimSpace(id) == id || !valid(id) {
		v.trim("id")
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

// checkOrigin refuses the forms of other sites. The log says so, because a proxy that changes
// the host makes the portal's own forms look like that.
func (v *visit) checkOrigin() error {
	if v.origins.Check(v.r) == nil {
		return nil
	}
	source, _ := webhookcfg.SourceAddr(v.ctx)
	args := []any{"source", source, "origin", redact.Presented(v.r.Header.Get("Origin")), "host", redact.Presented(v.r.Host)}
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" {
		v.logAt(slog.LevelWarn, "portal: refused a form that another site sent", append(args, "site", redact.Presented(site))...)
	} else {
		v.logAt(slog.LevelWarn, "portal: refused a form because its origin isn't the host: if it's the portal's own, let your proxy pass on the field Host (in nginx: proxy_set_header Host $http_host; next to it, a location also needs proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for)", args...)
	}
	return problem{status: http.StatusForbidden, key: "error.cross_origin"}
}
