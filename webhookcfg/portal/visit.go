package portal

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"example.com/go-webhookcfg/webhookcfg"
)

// visit is a request of a person, and the page that responds to it. Templates read the
// exported fields.
type visit struct {
	*portal
	*words
	input
	w    *response
	sent *http.Request // as it arrived, with its body
	// What has failed: the host's layout, and the state of deliveries.
	isPlain, isUnknown bool

	Page string // the name of the page, or of the one that a person asked for before the sign-in
	// IsRepaired means that the person may have just repaired a webhook.
	IsRepaired bool
	IsAgain    bool // a form was sent, perhaps before a sign-in
	// IsUnsure means that nobody can tell whether the change was made.
	IsUnsure bool

	Status                int
	Template, Title       string // a template that links to its own page has the name of that
	Person                string // who is signed in
	AsksToSignIn          bool
	Done, Problem, Detail string
	ID, Key               string
	Hook                  hookView // the page's entity, or the base
	Rows                  []row
	Find, After, Next     string
	State, Since          string // what a list or a send again is limited to
	Sent                  sent
	One                   webhookcfg.Notification
	IsCut                 bool // the body of One
	Plan                  webhookcfg.SendAgainPlan
	Obstacle              string // the key of the text that says why nothing is sent now
	Trouble               []trouble
	MoreTrouble           int  // webhooks that aren't in Trouble
	IsPartial             bool // Trouble is only that of this page
	Language, Sample      string
	Dropped               dropped
}

func (p *portal) newVisit(ctx context.Context, w http.ResponseWriter, r *http.Request) *visit {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	if _, ok := webhookcfg.SourceAddr(ctx); !ok && peer.IsValid() {
		ctx = webhookcfg.ContextWithSource(ctx, peer.Addr())
	}
	h := &host{r: r.WithContext(ctx), ctx: ctx, logger: p.Parent.Logger}
	v := &visit{portal: p, words: &words{host: h, text: p.Options.Text}, w: &response{ResponseWriter: w}, sent: r, Page: "overview", Status: http.StatusOK, Title: "title"}
	// A host's function that asks for a field would read any body, without a limit, and leave the files
	// of a multipart form behind, since net/http only removes those of its own request.
	v.r.Body, v.r.ContentLength = http.NoBody, 0
	v.setHeader()
	return v
}

// pageAddress returns the address of a page. All addresses have only a query, so the browser looks
// them up where it found the page that has them. Neither the path at which the portal is mounted nor
// a proxy that changes it, nor a link that spells it in an odd way, can lead a form elsewhere.
//
// If the query is too long for an address, as with an identifier that only your own syntax
// allows, it's the address of the overview.
func pageAddress(page string, fields url.Values) string {
	address := "?page=" + page
	if len(fields) > 0 {
		address += "&" + fields.Encode()
	}
	if len(address) > maxQuery {
		return pageAddress("overview", nil)
	}
	return address
}

// entityAddress is the address of a page of an entity, or of the base if the identifier is "".
func entityAddress(page, id string) string {
	if id == "" {
		return pageAddress(page, nil)
	}
	return pageAddress(page, url.Values{"id": {id}})
}
