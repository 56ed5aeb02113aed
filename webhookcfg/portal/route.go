package portal

import (
	"net/url"
	"slices"
)

// route says what a page serves. A POST needs a function of its own, or it gets 405.
type route struct {
	get, post func(*visit) error
	isPublic  bool     // nobody has to be signed in
	query     []string // the fields that a GET takes
	form      form     // what a POST takes, and does
}

// form is what people send to a page.
type form struct {
	fields []string
	do     func(*visit) error // what the person asks for
	again  show               // the page that has the form
	// effect returns the address of the page that shows the effect. If it's nil, there's none, and the page
	// that has the form says what came of it.
	effect       func(in *input) string
	button, done string // keys of the texts on the button that sends it, and after that
	isTest       bool   // it sends a test, so a failure leaves nobody unsure
	repairs      bool   // what comes of it can repair deliveries
}

// kept returns the fields that survive a sign-in: those of a form that was sent, or of the
// address.
func (r route) kept(isAgain bool) []string {
	if isAgain {
		return r.form.fields
	}
	return r.query
}

// allow returns the methods that the route takes.
func (r route) allow() string {
	if r.post == nil {
		return "GET, HEAD"
	}
	return "GET, HEAD, POST"
}

// credentials are the fields of the sign-in itself.
var credentials = []string{"username", "password", "then"}

// routes returns the routes by the names of their pages. A page has a route here, a file with what it
// reads, does, shows and says, and a template in assets/pages.
func routes() map[string]route {
	all := map[string]route{
		"overview":      {get: page(showOverview), query: []string{"show", "find", "after"}},
		"entity":        {get: page(showEntity), query: []string{"show", "id"}},
		"key":           {get: page(showKey), query: []string{"id"}},
		"sample":        {get: page(showSample), query: []string{"id", "lang", "show"}},
		"notifications": {get: page(showNotifications), query: []string{"id", "state", "after"}},
		"notification":  {get: page(showNotification), query: []string{"message"}},
		"set": {get: page(showEntity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id", "url"}, do: set, again: showSetForm, effect: toEntity,
			button: "set", done: "done.set", repairs: true,
		}},
		"unset": {get: page(showEntity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id"}, do: unset, again: showEntity, effect: toEntity,
			button: "entity.turn-off", done: "done.unset",
		}},
		"test": {get: page(showEntity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id"}, do: test, again: showEntity, effect: toEntity,
			button: "test", done: "done.test", isTest: true, repairs: true,
		}},
		"try": {get: page(showEntity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id", "url"}, do: try, again: showSetForm,
			button: "try", done: "done.try", isTest: true,
		}},
		"all": {get: page(showAll), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "url", "confirm"}, do: setAll, again: showAll, effect: toAll,
			button: "all.set", done: "done.all", repairs: true,
		}},
		"unset-all": {get: page(showUnsetAll), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "confirm"}, do: unsetAll, again: showUnsetAll, effect: toAll,
			button: "all.remove", done: "done.unset-all",
		}},
		"test-all": {get: page(showAll), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again"}, do: testAll, again: showAll, effect: toAll,
			button: "test", done: "done.test-all", isTest: true, repairs: true,
		}},
		"try-all": {get: page(showAll), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "url", "confirm"}, do: tryAll, again: showAll,
			button: "try", done: "done.try-all", isTest: true,
		}},
		"send-again": {get: page(showNotification), query: []string{"message"}, post: send, form: form{
			fields: []string{"client", "again", "message"}, do: sendOneAgain, again: showNotification, effect: toNotification,
			button: "one.again", done: "done.send-again",
		}},
		"again": {get: page(showAgain), query: []string{"id", "since"}, post: send, form: form{
			fields: []string{"client", "again", "id", "since"}, do: sendAgain, again: showAgain, effect: toAgain,
			button: "again.send", done: "done.again",
		}},
		"again-all": {get: page(showAgainAll), query: []string{"since"}, post: send, form: form{
			fields: []string{"client", "again", "since"}, do: sendAllAgain, again: showAgainAll, effect: toAgainAll,
			button: "again.all", done: "done.again-all",
		}},
		"sign-in":  {get: toOverview, post: signIn, isPublic: true, form: form{done: "done.sign-in"}},
		"sign-out": {get: toOverview, post: signOut, isPublic: true},
		"style":    {get: style, isPublic: true},
	}
	signIn := all["sign-in"]
	signIn.form.fields = append(fields(all), credentials...) // since it keeps those of any page
	all["sign-in"] = signIn
	return all
}

// fields returns all that a page takes.
func fields(routes map[string]route) (all []string) {
	for _, r := range routes {
		all = append(all, slices.Concat(r.query, r.form.fields)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// toEntity and the others return where people see the effect of what they sent.
func toEntity(in *input) string { return entityAddress("entity", in.typed("id")) }

func toAll(*input) string { return pageAddress("all", nil) }

func toAgain(in *input) string { return entityAddress("again", in.typed("id")) }

func toAgainAll(*input) string { return pageAddress("again-all", nil) }

func toNotification(in *input) string {
	return pageAddress("notification", url.Values{"message": {in.typed("message")}})
}
