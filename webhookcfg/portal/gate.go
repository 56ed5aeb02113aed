package portal

import (
	"errors"
	"net/http"
	"net/url"
)

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
	v.Template, v.Title, v.ID = "gate", "title", "" // an identifier can be whatever a link says
	v.write()
}

// askToSignIn is why a person has to sign in first.
type askToSignIn struct{ error }

func (e askToSignIn) Unwrap() error { return e.error }

// Button returns the key of the text on the button of the form that was sent.
func (v *visit) Button() string { return v.routes[v.Page].form.button }

// Kept returns the fields with which a person goes on once they have signed in: those of the
// form that they sent, or of the address that they asked for.
func (v *visit) Kept() url.Values {
	from := v.query
	if v.form != nil {
		from = v.form
	}
	kept := url.Values{}
	for _, field := range v.routes[v.Page].kept(v.IsAgain) {
		if from.Has(field) {
			kept.Set(field, from.Get(field))
		}
	}
	if v.IsAgain {
		kept.Set("again", "1")
	}
	return kept
}

// Again returns the text of a field, if the form was sent to this page, or tried.
func (v *visit) Again(page, field string) string {
	if v.Page != page && !(v.Page == "try" && page == "set") && !(v.Page == "try-all" && page == "all") {
		return ""
	}
	return v.typed(field)
}

// AskedID returns the identifier in the form or in the query.
func (v *visit) AskedID() string { return v.asked("id") }

// Typed returns the text that a person typed into a field.
func (v *visit) Typed(field string) string { return v.typed(field) }
