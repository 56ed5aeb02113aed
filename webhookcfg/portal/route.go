package portal

import (
	"errors"
	"net/http"
	"slices"

	"example.com/go-webhookcfg/internal/bodytimer"
	"example.com/go-webhookcfg/webhookcfg"
)

// route says what a page serves. A POST needs a function of its own, or it gets 405.
type route struct {
	get, post func(*visit) error
	isPublic  bool // nobody has to be signed in
	// query has the fields that a GET takes in its query, and form those that a POST takes.
	query, form []string
	button      string // the key of the text on the button that sends the form
}

// kept returns the fields that survive a sign-in: those of a form that was sent, or of the
// address.
func (r route) kept(isAgain bool) []string {
	if isAgain {
		return r.form
	}
	return r.query
}

// credentials are the fields of the sign-in itself.
var credentials = []string{"username", "password", "then"}

func routes() map[string]route {
	all := map[string]route{
		"overview": {get: page((*visit).overview), query: []string{"show", "find", "after"}},
		"entity":   {get: page((*visit).entity), query: []string{"show", "id"}},
		"key":      {get: page((*visit).key), query: []string{"id"}},
		"sample":   {get: page((*visit).sample), query: []string{"id", "lang", "show"}},
		"set": {
			get: page((*visit).entity), query: []string{"show", "id"},
			post: change((*visit).set, (*visit).setForm), form: []string{"client", "again", "id", "url"}, button: "set",
		},
		"unset": {
			get: page((*visit).entity), query: []string{"show", "id"},
			post: change((*visit).unset, (*visit).entity), form: []string{"client", "again", "id"}, button: "entity.turn-off",
		},
		"test": {
			get: page((*visit).entity), query: []string{"show", "id"},
			post: change((*visit).test, (*visit).entity), form: []string{"client", "again", "id"}, button: "test",
		},
		"test-all": {
			get: page((*visit).all), query: []string{"show"},
			post: change((*visit).testAll, (*visit).all), form: []string{"client", "again"}, button: "test",
		},
		"all": {
			get: page((*visit).all), query: []string{"show"},
			post: change((*visit).setAll, (*visit).all), form: []string{"client", "again", "url", "confirm"}, button: "all.set",
		},
		"unset-all": {
			get: page((*visit).all), query: []string{"show"},
			post: change((*visit).unsetAll, (*visit).all), form: []string{"client", "again", "confirm"}, button: "all.remove",
		},
		"try": {
			get: page((*visit).entity), query: []string{"show", "id"},
			post: attempt((*visit).try, (*visit).setForm), form: []string{"client", "again", "id", "url"}, button: "try",
		},
		"try-all": {
			get: page((*visit).all), query: []string{"show"},
			post: attempt((*visit).tryAll, (*visit).all), form: []string{"client", "again", "url", "confirm"}, button: "try",
		},
		"notifications": {get: page((*visit).notifications), query: []string{"id", "state", "after"}},
		"notification":  {get: page((*visit).notification), query: []string{"message"}},
		"send-again": {
			get: page((*visit).notification), query: []string{"message"},
			post: change((*visit).sendOneAgain, (*visit).notification), form: []string{"client", "again", "message"}, button: "one.again",
		},
		"again": {
			get: page((*visit).againPage), query: []string{"id", "since"},
			post: change((*visit).sendAgain, (*visit).againPage), form: []string{"client", "again", "id", "since"}, button: "again.send",
		},
		"again-all": {
			get: page((*visit).againAllPage), query: []string{"since"},
			post: change((*visit).sendAllAgain, (*visit).againAllPage), form: []string{"client", "again", "since"}, button: "again.all",
		},
		"sign-in":  {get: (*visit).toOverview, post: (*visit).signIn, isPublic: true, form: credentials},
		"sign-out": {get: (*visit).toOverview, post: (*visit).signOut, isPublic: true},
		"style":    {get: (*visit).style, isPublic: true},
	}
	signIn := all["sign-in"]
	signIn.form = fields(all) // since it keeps those of any page
	all["sign-in"] = signIn
	return all
}

// fields returns all that a page takes.
func fields(routes map[string]route) (all []string) {
	for _, r := range routes {
		all = append(all, slices.Concat(r.query, r.form)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// page serves the page that show fills in.
func page(show func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		if err := show(v); err != nil {
			return err
		}
		if v.r.Method == http.MethodGet {
			v.takeNotice()
			v.showMissing()
		}
		v.write()
		return nil
	}
}

// change makes a change, and leads to the page that shows its effect. If the change fails, it
// shows the form again, with the reason and the fields that the person typed.
func change(make, form func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		err := v.checkClient()
		if err == nil {
			err = make(v)
		}
		if err != nil {
			e, ok := errors.AsType[*webhookcfg.Error](err)
			v.IsUnsure = ok && e.Status >= http.StatusInternalServerError && v.Page != "test" && v.Page != "test-all"
			return v.again(err, form)
		}
		address := v.changed()
		v.leaveNotice(v.Page, address)
		return v.redirect(address)
	}
}

// attempt makes an attempt that changes nothing, and shows the form again, with what came of it.
func attempt(make, form func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		err := v.checkClient()
		if err == nil {
			err = make(v)
		}
		if err != nil {
			return v.again(err, form)
		}
		v.Done = "done." + v.Page
		return page(form)(v)
	}
}

// again shows a form again, with the reason. If its page can't be shown, the person gets only the
// reason and the form, and no page with other forms that look alike.
func (v *visit) again(reason error, form func(*visit) error) error {
	v.fail(reason)
	if page(form)(v) != nil {
		return reason
	}
	return nil
}

// ServeHTTP implements [http.Handler].
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bodytimer.Serve(http.HandlerFunc(p.guard), p.Parent.Timeout, w, r)
}

func (r route) allow() string {
	if r.post == nil {
		return "GET, HEAD"
	}
	return "GET, HEAD, POST"
}

func (v *visit) toOverview() error { return v.redirect(pageAddress("overview", nil)) }
