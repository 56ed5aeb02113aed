// Package portal gives your clients a page for their webhooks. In a browser, people see which
// webhooks are in effect and how deliveries go. They can change webhooks and send a test. The
// pages need no script.
//
//	pages, err := portal.New(handler, &portal.Options{SignIn: &portal.SignIn{}})
//	mux.Handle("/portal/", http.StripPrefix("/portal", pages))
//
// You can let people sign in with a client's id and secret, as above and in the example. If
// your service has sessions of its own, set [Options.Client] instead of [Options.SignIn].
//
// You should serve the portal over https. Over http, browsers keep the cookie of a sign-in
// only on localhost.
//
// # Safety
//
// Everything that a page does goes through your [webhookcfg.Handler], with its checks, events
// and limits. The actor of an event is the person who signed in, as if you had called
// [webhookcfg.ContextWithActor].
//
// If your verifier limits sign-ins, put the middleware that finds the client's address around
// the portal too (WithSource of package auth). Otherwise the limits use the address of the
// connection, which can be your proxy's.
//
// Pages run no script, load nothing from elsewhere, aren't stored, and can't be framed unless
// you set [Options.FrameAncestors]. Their forms only work from their own origin
// ([http.CrossOriginProtection]). They show URLs without path and query until the owner asks
// for the rest.
//
// # Looks
//
// Set [Options.Layout] to put the content into your own page, and [Options.Text] to translate
// it. You can change the colors with CSS variables: see the file assets/style.css.
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

// Options configure [New]. Set either Client or SignIn. The portal calls your functions
// concurrently, with the context of the request or one that is derived from it.
type Options struct {
	// Client finds out, from your own session, whose webhooks a request can see and change.
	// It returns that client, and the actor, such as the id of the user.
	//
	// If nobody is signed in, return an empty client. The page then links to SignInURL, which
	// you must set too. If you return an error, the page says to try again in a moment (503).
	// The error is logged, so it must not contain the session's token.
	//
	// The cookie of your session should be SameSite=Lax or Strict.
	Client    func(r *http.Request) (client, actor string, err error)
	SignInURL string

	// SignIn makes the portal itself ask for a client's id and secret.
	SignIn *SignIn

	// OneOnly hides and refuses changes of all entities. It's always on if the handler has
	// [webhookcfg.AllScopeRefused].
	OneOnly bool

	// Test sends a test notification to the webhook in effect for an entity, or for the base
	// if entity is "". If it's nil, people can't send tests.
	//
	// Use Test of a Sender of package deliver. A test that succeeds lets stopped deliveries
	// resume, and the page says so. The file repair.go in examples/service shows how.
	//
	// If you write your own, return "" if the receiver accepted the test, and otherwise a
	// Reason of [webhookcfg.DeliveryStatus]. An accepted test must let stopped deliveries
	// resume, since the page promises that. An error with a method RetryAfter()
	// time.Duration asks the person to wait. Any other error gives 503.
	Test func(ctx context.Context, client, entity string) (reason string, err error)

	// SigningKey returns the key that a client needs to verify notifications. People see it
	// when they ask for it. If SigningKey is nil, they can't.
	SigningKey func(ctx context.Context, client string) (string, error)

	// Note appears on the first page. You can use it to list the addresses that you send
	// from.
	Note template.HTML

	// Text translates: it returns the text with a key in the language of the request's user,
	// or "" for the English one. [Texts] returns all keys.
	Text func(r *http.Request, key string) string

	// Layout writes a whole page, with your own header and footer. The portal has already set
	// the response header. If your page needs more than the field Content-Security-Policy
	// allows, change that field. If Layout is nil, the portal writes a plain page.
	Layout func(w http.ResponseWriter, r *http.Request, page Page)

	// FrameAncestors lists who can show the portal in a frame, as the sources in the
	// directive frame-ancestors. It defaults to 'none'.
	FrameAncestors string
}

// Page is the content of a page. [Options.Layout] gets it.
type Page struct {
	// Status is the HTTP status that you should write.
	Status int
	// Title is the title of the page, and Lang its language.
	Title, Lang string
	// Content is an element main. It needs the stylesheet "style.css", at that path relative
	// to the page.
	Content template.HTML
}

// portal is the handler that New makes. Templates read the exported fields.
type portal struct {
	handler *webhookcfg.Handler
	Parent  webhookcfg.Options // of the handler
	Options Options
	actions map[string]action
	seal    seal
	policy  string // the Content-Security-Policy
}

// New returns the handler of the pages. Mount it with [http.StripPrefix], at a path that ends
// in a slash. The store of h must be a [webhookcfg.Lister]. The error says which option is
// missing or invalid.
func New(h *webhookcfg.Handler, options *Options) (http.Handler, error) {
	if h == nil || options == nil {
		return nil, errors.New("portal: New needs a handler and options")
	}
	if !h.CanList() {
		return nil, errors.New("portal: the handler's store can't list webhooks: it must be a webhookcfg.Lister")
	}
	p := &portal{handler: h, Parent: h.Options(), Options: *options, actions: actions()}
	o := &p.Options
	switch {
	case (o.Client == nil) == (o.SignIn == nil):
		return nil, errors.New("portal: set either Options.Client or Options.SignIn, and not both")
	case (o.Client == nil) != (o.SignInURL == ""):
		return nil, errors.New("portal: set Options.SignInURL together with Options.Client, and not without it")
	case strings.ContainsAny(o.FrameAncestors, ";,\r\n"):
		return nil, errors.New("portal: Options.FrameAncestors has a semicolon, comma or line break: separate sources with spaces")
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

// action says what a path shows. If change isn't nil, a POST makes that change, and change
// returns the page that shows the effect. If the change fails, the page shows the reason, and
// the fields that the person typed.
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

// visit is a request of a person, and the page that responds to it. Templates read the
// exported fields.
type visit struct {
	*portal
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	client string

	Path    string // of the request, or the page that a person asked for before the sign-in
	IsAgain bool   // a form was sent, perhaps before a sign-in

	Status                int
	Template, Title       string
	Person                string // who is signed in
	AsksToSignIn          bool
	Done, Problem, Detail string
	ID, Key               string
	Hook                  hookView // the page's entity, or the base
	Rows                  []row
	Find, Next            string
	Count                 int // overrides that a change of all would drop
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

// typed returns the text that a person typed into a field.
func (v *visit) typed(field string) string { return v.r.PostForm.Get(field) }

// redirect responds to a change with the page that shows its effect. The location is
// relative, because a proxy or [http.StripPrefix] may have removed a prefix that
// [http.Redirect] doesn't know.
func (v *visit) redirect(location string) {
	v.w.Header().Set("Location", location)
	v.w.WriteHeader(http.StatusSeeOther)
}
