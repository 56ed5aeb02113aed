package portal

import "net/url"

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
