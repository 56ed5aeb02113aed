package portal

import (
	"net/http"
	"net/url"
	"slices"

	"example.com/go-webhookcfg/internal/bodytimer"
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
	// effect returns the address of the page that shows the effect. If it's nil, the form changes nothing, so
	// the page that has it says what came of it.
	effect       func(in *input) string
	button, done string // keys of the texts on the button that sends it, and after that
	isTest       bool   // it never changes a webhook
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

func routes() map[string]route {
	all := map[string]route{
		"overview":      {get: page((*visit).overview), query: []string{"show", "find", "after"}},
		"entity":        {get: page((*visit).entity), query: []string{"show", "id"}},
		"key":           {get: page((*visit).key), query: []string{"id"}},
		"sample":        {get: page((*visit).sample), query: []string{"id", "lang", "show"}},
		"notifications": {get: page((*visit).notifications), query: []string{"id", "state", "after"}},
		"notification":  {get: page((*visit).notification), query: []string{"message"}},
		"set": {get: page((*visit).entity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id", "url"}, do: (*visit).set, again: (*visit).setForm, effect: toEntity,
			button: "set", done: "done.set", repairs: true,
		}},
		"unset": {get: page((*visit).entity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id"}, do: (*visit).unset, again: (*visit).entity, effect: toEntity,
			button: "entity.turn-off", done: "done.unset",
		}},
		"test": {get: page((*visit).entity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id"}, do: (*visit).test, again: (*visit).entity, effect: toEntity,
			button: "test", done: "done.test", isTest: true, repairs: true,
		}},
		"try": {get: page((*visit).entity), query: []string{"show", "id"}, post: send, form: form{
			fields: []string{"client", "again", "id", "url"}, do: (*visit).try, again: (*visit).setForm,
			button: "try", done: "done.try", isTest: true,
		}},
		"all": {get: page((*visit).all), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "url", "confirm"}, do: (*visit).setAll, again: (*visit).all, effect: toAll,
			button: "all.set", done: "done.all", repairs: true,
		}},
		"unset-all": {get: page((*visit).all), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "confirm"}, do: (*visit).unsetAll, again: (*visit).all, effect: toAll,
			button: "all.remove", done: "done.unset-all",
		}},
		"test-all": {get: page((*visit).all), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again"}, do: (*visit).testAll, again: (*visit).all, effect: toAll,
			button: "test", done: "done.test-all", isTest: true, repairs: true,
		}},
		"try-all": {get: page((*visit).all), query: []string{"show"}, post: send, form: form{
			fields: []string{"client", "again", "url", "confirm"}, do: (*visit).tryAll, again: (*visit).all,
			button: "try", done: "done.try-all", isTest: true,
		}},
		"send-again": {get: page((*visit).notification), query: []string{"message"}, post: send, form: form{
			fields: []string{"client", "again", "message"}, do: (*visit).sendOneAgain, again: (*visit).notification, effect: toNotification,
			button: "one.again", done: "done.send-again",
		}},
		"again": {get: page((*visit).againPage), query: []string{"id", "since"}, post: send, form: form{
			fields: []string{"client", "again", "id", "since"}, do: (*visit).sendAgain, again: (*visit).againPage, effect: toAgain,
			button: "again.send", done: "done.again",
		}},
		"again-all": {get: page((*visit).againAllPage), query: []string{"since"}, post: send, form: form{
			fields: []string{"client", "again", "since"}, do: (*visit).sendAllAgain, again: (*visit).againAllPage, effect: toAgainAll,
			button: "again.all", done: "done.again-all",
		}},
		"sign-in":  {get: (*visit).toOverview, post: (*visit).signIn, isPublic: true, form: form{done: "done.sign-in"}},
		"sign-out": {get: (*visit).toOverview, post: (*visit).signOut, isPublic: true},
		"style":    {get: (*visit).style, isPublic: true},
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

// Where people see the effect of what they sent:
func toEntity(in *input) string { return entityAddress("entity", in.typed("id")) }
func toAll(*input) string       { return pageAddress("all", nil) }
func toAgain(in *input) string  { return entityAddress("again", in.typed("id")) }
func toAgainAll(*input) string  { return pageAddress("again-all", nil) }
func toNotification(in *input) string {
	return pageAddress("notification", url.Values{"message": {in.typed("message")}})
}

// ServeHTTP implements [http.Handler].
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bodytimer.Serve(http.HandlerFunc(p.guard), p.Parent.Timeout, w, r)
}

func (v *visit) toOverview() error { return v.redirect(pageAddress("overview", nil)) }
