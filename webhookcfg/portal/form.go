package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

func (v *visit) asked(field string) string { return cmp.Or(v.Typed(field), v.query.Get(field)) }

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
