package portal

import (
	"errors"
	"net/http"
	"net/url"
)

// gatePage says why a person doesn't get the page that they asked for, lets them sign in, and keeps
// what they typed.
type gatePage struct {
	*frame
	AsksToSignIn      bool
	IsAgain, IsUnsure bool
	Page              string     // that they asked for
	Kept              url.Values // with which they go on
	Button            string     // the key of the text on the button of the form that they sent
	AskedID, URL      string
	Username          string
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

// askToSignIn is why a person has to sign in first.
type askToSignIn struct{ error }

func (e askToSignIn) Unwrap() error { return e.error }

// gateTexts are the words of the page that takes the place of another one.
var gateTexts = map[string]string{
	"gate.sign-in":  "Sign in",
	"gate.id":       "Client ID",
	"gate.secret":   "Secret",
	"gate.link":     "Go to the sign-in",
	"gate.kept":     "What you typed is kept, and nothing was changed:",
	"gate.unsure":   "What you typed is kept:",
	"gate.then":     "What you typed comes back after you sign in.",
	"gate.again":    "Send it again",
	"gate.overview": "Go to the webhooks",
}
