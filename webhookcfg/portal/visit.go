package portal

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// visit is a request of a person, and the page that responds to it. Templates read the
// exported fields.
type visit struct {
	*portal
	w     *response
	r     *http.Request
	ctx   context.Context
	query url.Values
	form  url.Values // of a POST
	// What has failed: the host's translation, its layout, and the state of deliveries.
	isEnglish, isPlain, isUnknown bool

	Path    string // of the request, or the page that a person asked for before the sign-in
	IsAgain bool   // a form was sent, perhaps before a sign-in
	// IsUnsure means that nobody can tell whether the change was made.
	IsUnsure bool

	Status                int
	Template, Title       string
	Client, Person        string // for whom and who is signed in
	AsksToSignIn          bool
	Done, Problem, Detail string
	ID, Key               string
	Hook                  hookView // the page's entity, or the base
	Rows                  []row
	Find, After, Next     string
	State, Since          string // what a list or a send again is limited to
	Sent                  sent
	One                   webhookcfg.Notification
	Plan                  webhookcfg.SendAgainPlan
	Trouble               []trouble
	MoreTrouble           int  // webhooks that aren't in Trouble
	IsPartial             bool // Trouble is only that of this page
	Language, Sample      string
	Count                 int // overrides that a change of all would drop
	IsMore                bool
}

func (p *portal) newVisit(ctx context.Context, w http.ResponseWriter, r *http.Request) *visit {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	if _, ok := webhookcfg.SourceAddr(ctx); !ok && peer.IsValid() {
		ctx = webhookcfg.ContextWithSource(ctx, peer.Addr())
	}
	v := &visit{portal: p, w: &response{ResponseWriter: w}, r: r.WithContext(ctx), ctx: ctx, Path: strings.TrimPrefix(r.URL.Path, "/"), Status: http.StatusOK, Title: "title"}
	v.setHeader()
	return v
}

// Here returns the address of the page without its query. After a sign-in, or if a form gets
// the overview, the browser is at another address.
func (v *visit) Here() string {
	if v.Template == "overview" {
		return "overview"
	}
	return v.Path
}

// location returns the address of a page, relative to the others. If the query is too long for
// an address, as with an identifier that only your own syntax allows, it's the address of the
// overview.
func location(path string, fields url.Values) string {
	query := fields.Encode()
	switch {
	case len(query) > maxQuery:
		return "overview"
	case query != "":
		query = "?" + query
	}
	return path + query
}

// entityLocation is the location of a page of an entity, or of the base if the identifier is "".
func entityLocation(path, id string) string {
	if id == "" {
		return location(path, nil)
	}
	return location(path, url.Values{"id": {id}})
}
