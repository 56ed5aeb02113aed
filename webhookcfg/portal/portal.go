// Package portal is an optional page for people: in a browser, your clients see which webhooks
// are in effect and how deliveries go, change them, and send a test. It needs no script.
//
//	pages, err := portal.New(handler, &portal.Options{SignIn: &portal.SignIn{}})
//	mux.Handle("/portal/", http.StripPrefix("/portal", pages))
//
// People sign in through your service's own session ([Options.Client]), or with a client's id
// and secret ([Options.SignIn]). Serve the portal over https: without it, browsers keep the
// cookie of a sign-in on localhost only.
//
// # Safety
//
// All that a page does goes through the [webhookcfg.Handler], with its checks, events and
// limits. The actor of an event
// ([webhookcfg.ContextWithActor]) is whoever signed in. If your verifier limits sign-ins, put
// the middleware that finds the client's address around the portal too (WithSource of package
// auth); otherwise the address is the connection's.
//
// Pages can't be framed, run no script, load nothing from elsewhere and aren't stored. Forms
// work from their own origin only ([http.CrossOriginProtection]). URLs are shown without path
// and query until their owner asks.
//
// # Looks
//
// [Options.Layout] puts the content into your own page, and [Options.Text] translates it. The
// colors are CSS variables: see the file assets/style.css.
package portal

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/netip"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// Options are the options of [New]. Exactly one of Client and SignIn must be set. All functions
// are called concurrently, and get the request's context or one that is derived from it.
type Options struct {
	// Client returns the client whose webhooks a request may see and change, and the actor,
	// such as the id of the user, from your session. An empty client means that nobody is
	// signed in; the page then links to SignInURL, which must be set too. An error gives 503
	// and is logged, so it must not hold the session's token.
	//
	// Your session's cookie should be SameSite=Lax or Strict.
	Client    func(r *http.Request) (client, actor string, err error)
	SignInURL string

	// SignIn has the portal ask for a client's id and secret.
	SignIn *SignIn

	// OneOnly hides and refuses what reaches all entities. It is always on if the handler has
	// [webhookcfg.AllScopeRefused].
	OneOnly bool

	// Test sends a test notification to the webhook in effect for an entity; entity is "" for
	// the base. It returns "" if the receiver accepted it, and otherwise why not: a
	// Reason of [webhookcfg.DeliveryStatus]. An error with a method RetryAfter()
	// time.Duration asks to wait, any other gives 503. If Test is nil, pages have no test.
	//
	// Use Test of a Sender of package deliver, which ends the stop of a webhook: the page says
	// that a test does. The file repair.go in examples/service shows how.
	Test func(ctx context.Context, client, entity string) (reason string, err error)

	// SigningKey returns the key with which the client verifies notifications. It is shown on
	// request. If nil, pages have none.
	SigningKey func(ctx context.Context, client string) (string, error)

	// Note is shown on the first page: for example, the addresses that you send from.
	Note template.HTML

	// Text returns the text with a key, in the language of the request's user, or "" for the
	// English one. [Texts] returns all.
	Text func(r *http.Request, key string) string

	// Layout writes a whole page with your own header and footer. The response header is
	// complete; change Content-Security-Policy if your page needs more. If nil, the portal
	// writes a plain page.
	Layout func(w http.ResponseWriter, r *http.Request, page Page)

	// FrameAncestors says who may show the portal in a frame: the sources of the directive
	// frame-ancestors. It defaults to 'none'.
	FrameAncestors string
}

// Page is the content of a page, for [Options.Layout].
type Page struct {
	// Status is the HTTP status to write.
	Status int
	// Title is the title of the page, and Lang its language.
	Title, Lang string
	// Content is an element main. It needs the stylesheet "style.css", relative to the page.
	Content template.HTML
}

// portal is the handler. Templates read the exported fields.
type portal struct {
	handler *webhookcfg.Handler
	Parent  webhookcfg.Options // of the handler
	Options Options
	actions map[string]action
	seal    seal
	policy  string // Content-Security-Policy
}

// New returns the handler of the pages. Mount it with [http.StripPrefix] at a path that ends in
// a slash. The handler's store must be a [webhookcfg.Lister]. The error names the option that
// is missing or invalid.
func New(h *webhookcfg.Handler, options *Options) (http.Handler, error) {
	if h == nil || options == nil {
		return nil, errors.New("portal: New without a handler or options")
	}
	if !h.CanList() {
		return nil, errors.New("portal: the handler's store is not a webhookcfg.Lister")
	}
	p := &portal{handler: h, Parent: h.Options(), Options: *options, actions: actions()}
	o := &p.Options
	switch {
	case (o.Client == nil) == (o.SignIn == nil):
		return nil, errors.New("portal: want exactly one of Options.Client and Options.SignIn")
	case (o.Client == nil) != (o.SignInURL == ""):
		return nil, errors.New("portal: want Options.SignInURL exactly with Options.Client")
	case strings.ContainsAny(o.FrameAncestors, ";,\r\n"):
		return nil, errors.New("portal: Options.FrameAncestors is not a list of sources")
	}
	if o.SignIn != nil {
		var err error
		if p.seal, err = newSeal(o.SignIn); err != nil {
			return nil, err
		}
	}
	o.OneOnly = o.OneOnly || p.Parent.AllScope == webhookcfg.AllScopeRefused
	p.policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + cmp.Or(o.FrameAncestors, "'none'")
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.newVisit(w, r).gate(problem{status: http.StatusForbidden, key: "error.cross_origin"})
	}))
	return protection.Handler(p), nil
}

// action is what a path shows and, if change isn't nil, what a POST to it changes. A change
// returns where its effect is shown. If it fails, the page shows why, and what was typed.
type action struct {
	show   func(*visit) error
	change func(*visit) (location string, err error)
}

func actions() map[string]action {
	return map[string]action{
		"":          {show: (*visit).overview},
		"entity":    {show: (*visit).entity},
		"all":       {show: (*visit).all, change: (*visit).setAll},
		"key":       {show: (*visit).key},
		"set":       {show: (*visit).entityForm, change: (*visit).set},
		"unset":     {show: (*visit).entityForm, change: (*visit).unset},
		"test":      {show: (*visit).testForm, change: (*visit).test},
		"unset-all": {show: (*visit).all, change: (*visit).unsetAll},
	}
}

// ServeHTTP implements [http.Handler].
func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := p.newVisit(w, r)
	ctx, cancel := context.WithTimeout(v.ctx, p.Parent.Timeout)
	defer cancel()
	v.ctx = ctx
	isPost := r.Method == http.MethodPost
	isSession := v.Path == "sign-in" || v.Path == "sign-out"
	action, ok := p.actions[v.Path]
	v.IsAgain = isPost && action.change != nil
	switch {
	case v.Path == "style.css":
		serveStyle(w)
	case !ok && !isSession:
		v.gate(notFound)
	case isPost && action.change == nil && !isSession:
		w.Header().Set("Allow", "GET, HEAD")
		v.gate(problem{status: http.StatusMethodNotAllowed, key: "error.method_not_allowed"})
	case !isPost && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		v.gate(problem{status: http.StatusMethodNotAllowed, key: "error.method_not_allowed"})
	case isSession && !isPost:
		v.redirect("./")
	case isPost && !v.readForm():
	case v.Path == "sign-in":
		v.signIn()
	case v.Path == "sign-out":
		v.signOut()
	case !v.enter():
	case isPost:
		v.post()
	default:
		v.show()
	}
}

// post makes a change.
func (v *visit) post() {
	location, err := v.actions[v.Path].change(v)
	if err == nil {
		v.redirect(location)
		return
	}
	v.fail(err)
	v.show()
}

// show responds with the page of the path.
func (v *visit) show() {
	if err := v.actions[v.Path].show(v); err != nil {
		v.gate(err)
		return
	}
	for flag := range v.r.URL.Query() {
		if done := "done." + flag; v.Done == "" && texts[done] != "" {
			v.Done = done
		}
	}
	v.write()
}

// visit is one request of a person, and the page that responds to it: templates read the
// exported fields.
type visit struct {
	*portal
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	client string

	Path    string // of the request, or the one that was asked for before a sign-in
	IsAgain bool   // a form was sent, perhaps before a sign-in

	Status                int
	Template, Title       string
	Person                string // who is signed in
	AsksToSignIn          bool
	Done, Problem, Detail string
	ID, Key               string
	Hook                  hookView // of the page's entity, or of the base
	Rows                  []row
	Find, Next            string
	Count                 int // of entities that a change of all takes their setting from
	IsMore                bool
}

func (p *portal) newVisit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{portal: p, w: w, r: r, ctx: r.Context(), Path: strings.TrimPrefix(r.URL.Path, "/"), Status: http.StatusOK, Title: "title"}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	if _, ok := webhookcfg.SourceAddr(v.ctx); !ok && peer.IsValid() {
		v.ctx = webhookcfg.ContextWithSource(v.ctx, peer.Addr())
	}
	v.setHeader()
	return v
}

// readForm reads the form of a POST.
func (v *visit) readForm() bool {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, v.Parent.BodyLimit)
	mediaType, _, _ := strings.Cut(v.r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		v.gate(problem{status: http.StatusUnsupportedMediaType, key: "error.unsupported_media_type"})
		return false
	}
	err := v.r.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		v.gate(problem{status: http.StatusRequestEntityTooLarge, key: "error.request_too_large"})
	} else if err != nil {
		v.gate(problem{status: http.StatusBadRequest, key: "error.invalid_request"})
	}
	return err == nil
}

// typed returns what a person typed into a field.
func (v *visit) typed(field string) string { return v.r.PostForm.Get(field) }

// redirect responds to a change with where its effect is shown. The location is relative, since
// a proxy or [http.StripPrefix] may have removed a prefix that [http.Redirect] doesn't know of.
func (v *visit) redirect(location string) {
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
}
