package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// input is what a person asked for: the fields of the address, and those of the form that they sent.
type input struct {
	query, form url.Values // form is nil if none was sent
}

// typed returns the text that a person typed into a field.
func (in *input) typed(field string) string { return in.form.Get(field) }

// asked returns a field of the form or of the query, so that it survives a sign-in.
func (in *input) asked(field string) string { return cmp.Or(in.typed(field), in.query.Get(field)) }

// kept returns the fields with which a person goes on once they have signed in: those of the
// form that they sent, or of the address that they asked for.
func (in *input) kept(r route, isAgain bool) url.Values {
	from := in.query
	if in.form != nil {
		from = in.form
	}
	kept := url.Values{}
	for _, field := range r.kept(isAgain) {
		if from.Has(field) {
			kept.Set(field, from.Get(field))
		}
	}
	if isAgain {
		kept.Set("again", "1")
	}
	return kept
}

// maxQuery is the length of the longest query in bytes. The pages need much less. Each byte of
// a query costs us memory and time, even if nobody is signed in.
const maxQuery = 4 << 10

// readQuery parses the query, once for all pages. The page is the overview if the query names none.
func (in *input) readQuery(raw string) (page string, err error) {
	const fallback = "overview"
	if len(raw) > maxQuery {
		return fallback, problem{status: http.StatusRequestURITooLong, key: "error.long_address"}
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fallback, problem{status: http.StatusBadRequest, key: "error.invalid_request"}
	}
	in.query = copied(query)
	names, ok := in.query["page"]
	switch {
	case len(names) > 1:
		return fallback, oddAddress
	case !ok:
		return fallback, nil
	}
	in.query.Del("page")
	return names[0], nil
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
func (in *input) checkQuery(own, all []string) error {
	for name := range in.query {
		if !slices.Contains(all, name) && slices.Contains(all, lettersOf(name)) {
			return oddAddress
		}
	}
	for _, field := range all {
		if values, ok := in.query[field]; ok && (len(values) != 1 || !slices.Contains(own, field)) {
			return oddAddress
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

// oddAddress and oddForm are why an address or a form isn't one of the page's. An identifier
// that the form doesn't have, for example in the query, can mean that its sender meant only one entity.
var (
	oddAddress = problem{status: http.StatusBadRequest, key: "error.odd_address"}
	oddForm    = problem{status: http.StatusBadRequest, key: "error.odd_form"}
)

// readForm parses a form. It has only fields of the page's own, each once.
func (in *input) readForm(body string, own []string) error {
	form, err := url.ParseQuery(body)
	if err != nil {
		return problem{status: http.StatusBadRequest, key: "error.invalid_request"}
	}
	for field, values := range form {
		if len(values) != 1 || !slices.Contains(own, field) {
			return oddForm
		}
	}
	in.form = copied(form)
	for _, field := range []string{"url", "confirm", "username"} {
		in.trim(field)
	}
	return nil
}

// trim removes the blanks around what a person typed into a field, since pasting and the keyboards
// of phones add some. The API never does that.
func (in *input) trim(field string) {
	if in.form.Has(field) {
		in.form.Set(field, strings.Clone(strings.TrimSpace(in.typed(field))))
	}
}

// trimID removes the blanks around an identifier. It keeps them if the host's syntax allows them,
// because the form of such an entity has them, too.
func (in *input) trimID(valid func(id string) bool) {
	id := in.typed("id")
	if valid == nil || strings.TrimSpace(id) == id || !valid(id) {
		in.trim("id")
	}
}

// drop removes secrets from where an identifier or a host belongs, and reports whether there were any.
func (in *input) drop(secrets []string) (found bool) {
	for i, secret := range secrets {
		secrets[i] = strings.TrimSpace(secret) // as what was typed into the fields
	}
	for _, fields := range []url.Values{in.query, in.form} {
		for _, name := range []string{"id", "find", "after", "message", "state", "url"} {
			text := fields.Get(name)
			if name == "url" {
				text = egress.NewURL(strings.TrimSpace(text)).String()
			}
			if redact.Identifies(text, secrets...) {
				fields.Del(name)
				found = true
			}
		}
	}
	return found
}

// pageAddress returns the address of a page. All addresses have only a query, so the browser looks
// them up where it found the page that has them. Neither the path at which the portal is mounted nor
// a proxy that changes it, nor a link that spells it in an odd way, can lead a form elsewhere.
//
// If the query is too long for an address, as with an identifier that only your own syntax
// allows, it's the address of the overview.
func pageAddress(page string, fields url.Values) string {
	address := "?page=" + page
	if len(fields) > 0 {
		address += "&" + fields.Encode()
	}
	if len(address) > maxQuery {
		return pageAddress("overview", nil)
	}
	return address
}

// entityAddress is the address of a page of an entity, or of the base if the identifier is "".
func entityAddress(page, id string) string {
	if id == "" {
		return pageAddress(page, nil)
	}
	return pageAddress(page, url.Values{"id": {id}})
}

// checkClient refuses a form that was made for another client, for example before the person
// changed the account in another tab. They have to confirm a change of all again.
func (in *input) checkClient(client string) error {
	if in.typed("client") == client {
		return nil
	}
	in.form.Del("confirm")
	return problem{status: http.StatusConflict, key: "error.other_client"}
}

// entityScope returns the scope of the entity that the person typed. If the field is empty,
// that's an error, and never means all.
func (in *input) entityScope() (webhookcfg.Scope, error) {
	if id := in.typed("id"); id != "" {
		return webhookcfg.Entity(id), nil
	}
	return webhookcfg.Scope{}, problem{status: http.StatusBadRequest, key: "error.no_id"}
}
