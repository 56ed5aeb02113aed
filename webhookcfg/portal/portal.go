// Package portal gives your clients a page for their webhooks. In a browser, people see which
// webhooks are in effect and how deliveries go, change them, and send a test. The pages need
// no script.
//
//	pages, err := portal.New(handler, &portal.Options{SignIn: &portal.SignIn{}})
//	mux.Handle("/portal/", pages)
//
// Here, and in the example, people sign in with a client's id and secret. If your service has
// sessions of its own, set [Options.Client] instead of [Options.SignIn].
//
// Serve the portal over https. Over http, browsers keep its cookies only on localhost, so
// elsewhere people can't sign in with [Options.SignIn], and pages don't confirm changes. If you
// have to use http, your proxies must pass on the field Host, or forms look as if another site
// had sent them.
//
// # Notifications
//
// With [Options.Notifications], the pages show what was sent, and what
// came of each attempt. What is wrong with the webhooks on a page of the overview comes first
// there, with a link to where people can repair it. They can then send one notification again, or
// all that were given up, dropped or wait for long, after a page that says how many these are, and
// which of them would be dropped again.
//
// With [Options.Try], people can test a URL before they set it, and with [Options.SigningKey] they
// get code that verifies notifications, in five languages.
//
// # Safety
//
// Everything that a page reads or changes goes through your [webhookcfg.Handler], with its
// checks, events and limits. The actor of an event is the person who signed in, as if you had
// called [webhookcfg.ContextWithActor]. A form can't be larger than
// [webhookcfg.Options.BodyLimit], and has to arrive within [webhookcfg.Options.Timeout]. See
// [webhookcfg.Handler.ServeHTTP] for what your server needs for that.
//
// A form only works for the client that it was made for. People who change the account in
// another tab get the form again, with what they typed. A form with other fields than the page's
// own, or with a query, is refused, because its sender may have meant something else. Blanks
// around what people type are removed, unless [webhookcfg.Options.ValidEntityID] allows them in
// an identifier. A field that's then empty never means all entities.
//
// If one of your functions fails or panics, the person reads a sentence, and
// [webhookcfg.Options.Logger] gets the reason, without the webhook's path and query. If it's Test,
// Try or SigningKey, you get an event too, with the operation "test", "try" or "signing_key".
//
// If your verifier limits sign-ins, put the middleware that finds the client's address around
// the portal too ([example.com/go-webhookcfg/auth.WithSource]). Otherwise the limits use the
// address of the connection, which can be your proxy's.
//
// Pages run no script, load nothing from elsewhere, aren't stored, can't be reached by the site
// that opened them, and can't be framed unless your [Options.Layout] allows it. Their forms only
// work from their own origin ([http.CrossOriginProtection]). They show URLs without path and
// query until the owner asks for the rest.
//
// # Looks
//
// Set [Options.Layout] to put the content into your own page, and [Options.Text] to translate
// it. You can change the colors with CSS variables: see the file assets/style.css.
package portal

import (
	"context"
	"errors"
	"html/template"
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// Options configure [New]. Set either Client or SignIn. The portal calls your functions
// concurrently, with the context of the request or one that is derived from it.
type Options struct {
	// Client finds out, from your own session, whose webhooks a request can see and change.
	// It returns that client, and the actor, such as the id of the user.
	//
	// If nobody is signed in, return an empty client. The page then links to SignInURL, which
	// you must set too. If you return an error, the page says to try again in a moment (503).
	// The error is logged, so it must not contain the session's token. The portal has read the
	// body of the request before it calls you.
	//
	// The cookie of your session should be SameSite=Lax or Strict.
	Client    func(r *http.Request) (client, actor string, err error)
	SignInURL string

	// SignIn makes the portal itself ask for a client's id and secret.
	SignIn *SignIn

	// OneOnly hides and refuses changes of all entities. It's always on if the handler has
	// [webhookcfg.AllScopeRefused]. People can still test the base, the default webhook, and
	// send notifications of all entities again after an outage, because neither changes a
	// webhook.
	OneOnly bool

	// Test sends a test notification to the webhook in effect for an entity, or for the base if
	// entity is "". Send it to the webhook that you get, which is the one that the handler knows
	// now. If Test is nil, people can't send tests.
	//
	// Use [example.com/go-webhookcfg/webhookcfg/deliver.Sender.Tester]. A test that succeeds
	// lets stopped deliveries resume, and the page says so.
	//
	// If you write your own, limit how often a client can test. Return "" if the receiver
	// accepted the test, and otherwise a Reason of [webhookcfg.DeliveryStatus]. An accepted
	// test must let stopped deliveries resume, since the page promises that. An error with a
	// method RetryAfter() time.Duration asks the person to wait. A test has less time than the
	// request, so if your deliveries wait longer, don't count the end of ctx as a failure: return
	// an error that wraps an [egress.UnreachableError] with [egress.ReasonTimeout], and the page
	// says so. Any other error gives 503, and is logged. It's only called if a webhook is in
	// effect.
	Test func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (reason string, err error)

	// Try is Test for a URL that isn't set, for a webhook of an entity or for the base. People
	// can try a URL before they set it. The portal has called [webhookcfg.Handler.Check] before,
	// so the URL may have been probed even if Try then asks the person to wait. If it's nil,
	// people can't try. Use [example.com/go-webhookcfg/webhookcfg/deliver.Sender.Trier].
	Try func(ctx context.Context, client, entity string, target egress.URL) (reason string, err error)

	// SigningKey returns the key with which a receiver verifies notifications to the webhook in
	// effect for an entity, or to the base if entity is "". People see it when they ask for it.
	// If no webhook is set yet, you can return "". If SigningKey is nil, people can't ask. Use
	// [example.com/go-webhookcfg/webhookcfg/deliver.SigningKey].
	SigningKey func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error)

	// Notifications is your queue of notifications, for example an
	// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox]. With it, people see what was
	// sent and what came of it, and can send it again. NotificationBodies shows them the bodies
	// too.
	Notifications      sent.Queue
	NotificationBodies bool

	// Text translates: it returns the text with a key in the language of the request's user,
	// or "" for the English one. [Texts] returns all keys. A [webhookcfg.Refusal] of the
	// handler's options has the key "refusal." with its code, and its description is the
	// English text.
	Text func(r *http.Request, key string) string

	// Layout writes a whole page, with your own header and footer. The portal has already set
	// the response header. If your page needs more than the field Content-Security-Policy
	// allows, such as to be shown in a frame, change that field. If Layout is nil, the portal
	// writes a plain page.
	Layout func(w http.ResponseWriter, r *http.Request, page Page)
}

// Page is the content of a page. [Options.Layout] gets it.
type Page struct {
	// Status is the HTTP status that you should write.
	Status int
	// Title is the title of the page, and Lang its language.
	Title, Lang string
	// Content is an element main. It needs the stylesheet at the address "?page=style", which
	// is relative to the page.
	Content template.HTML
}

// portal is the handler that New makes. Templates read the exported fields.
type portal struct {
	handler *webhookcfg.Handler
	Parent  webhookcfg.Options // of the handler
	Options Options
	view    *sent.View // of Options.Notifications
	routes  map[string]route
	fields  []string // of all pages
	seal    seal
	origins http.CrossOriginProtection
}

// New returns the handler of the pages. Mount it at any path: it only looks at the query, where its
// addresses have the name of the page, such as "?page=entity&id=e1".
//
// The store of h must be a [webhookcfg.Lister]. The error says which option is missing or
// invalid.
func New(h *webhookcfg.Handler, options *Options) (http.Handler, error) {
	if h == nil || options == nil {
		return nil, errors.New("portal: New needs a handler and options")
	}
	if !h.CanList() {
		return nil, errors.New("portal: the handler's store can't list webhooks: it must be a webhookcfg.Lister")
	}
	p := &portal{handler: h, Parent: h.Options(), Options: *options, routes: routes()}
	p.fields = append(fields(p.routes), "page")
	o := &p.Options
	switch {
	case (o.Client == nil) == (o.SignIn == nil):
		return nil, errors.New("portal: set either Options.Client or Options.SignIn, and not both")
	case (o.Client == nil) != (o.SignInURL == ""):
		return nil, errors.New("portal: set Options.SignInURL together with Options.Client, and not without it")
	}
	if o.SignIn != nil {
		var err error
		if p.seal, err = newSeal(o.SignIn); err != nil {
			return nil, err
		}
	}
	p.view = &sent.View{Handler: h, Queue: o.Notifications, Bodies: o.NotificationBodies}
	o.OneOnly = o.OneOnly || p.Parent.AllScope == webhookcfg.AllScopeRefused
	return p, nil
}
