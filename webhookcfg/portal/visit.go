package portal

import (
	"context"
	"net/http"
	"net/netip"

	"example.com/go-webhookcfg/internal/source"
)

// visit is a request of a person, and the response to it.
type visit struct {
	*frame // of the page that responds
	input
	w    *response
	sent *http.Request // as it arrived, with its body

	page     string // the name of the page that a person asked for
	isAgain  bool   // a form was sent, perhaps before a sign-in
	isUnsure bool   // nobody can tell whether the change was made
	// What has failed: the host's layout, and the state of deliveries.
	isPlain, isUnknown bool
}

func (p *portal) newVisit(ctx context.Context, w http.ResponseWriter, r *http.Request) *visit {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	if _, ok := source.Of(ctx); !ok && peer.IsValid() {
		ctx = source.With(ctx, peer.Addr())
	}
	h := &host{r: r.WithContext(ctx), ctx: ctx, logger: p.Parent.Logger}
	f := &frame{portal: p, words: &words{host: h, text: p.Options.Text}, Status: http.StatusOK}
	v := &visit{frame: f, w: newResponse(w), sent: r, page: "overview"}
	// A host's function that asks for a field would read any body, without a limit, and leave the files
	// of a multipart form behind, since net/http only removes those of its own request.
	v.r.Body, v.r.ContentLength = http.NoBody, 0
	return v
}
