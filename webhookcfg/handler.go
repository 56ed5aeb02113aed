package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Handler serves the interface. It is safe for concurrent use.
//
// It answers every path itself, never redirects and never cleans a path. It sets
// the Pattern of a request that reached an operation, so that middleware around
// it can name the route.
type Handler struct {
	store        Store
	lister       Lister // nil if the store is none
	verifier     CredentialVerifier
	routes       routes
	challenge    string
	validEntity  func(id string) bool
	entityRule   string // what a caller reads where validEntity says no
	catalogue    func(ctx context.Context, client, entity string) (bool, error)
	policy       *egress.Policy
	prober       Prober
	probeMode    ProbeMode
	probeTimeout time.Duration
	timeout      time.Duration
	bodyLimit    int64
	logger       *slog.Logger
	onEvent      func(ctx context.Context, e Event)
	now          func() time.Time
	bodies       sync.Pool // of *[]byte
}

// NewHandler returns a handler over a store and a verifier. Nil options mean the
// zero Options. The error tells what of the arguments cannot work.
func NewHandler(store Store, verifier CredentialVerifier, options *Options) (*Handler, error) {
	if store == nil {
		return nil, errors.New("webhookcfg: nil Store")
	}
	if verifier == nil {
		return nil, errors.New("webhookcfg: nil CredentialVerifier")
	}
	var o Options
	if options != nil {
		o = *options
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("webhookcfg: %w", err)
	}
	lister, _ := store.(Lister)
	h := &Handler{
		store:        store,
		lister:       lister,
		verifier:     verifier,
		routes:       newRoutes(o.BasePath, o.VariantAliases, o.Reads, lister != nil),
		challenge:    `Basic realm="` + o.Realm + `", charset="UTF-8"`,
		catalogue:    o.EntityExists,
		policy:       o.Policy,
		prober:       o.Prober,
		probeMode:    o.ProbeMode,
		probeTimeout: o.ProbeTimeout,
		timeout:      o.Timeout,
		bodyLimit:    o.BodyLimit,
		logger:       o.Logger,
		onEvent:      o.OnEvent,
		now:          o.Now,
	}
	h.validEntity, h.entityRule = entitySyntax(o.ValidEntityID)
	h.bodies.New = func() any { buf := make([]byte, 0, 512); return &buf }
	return h, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, f := h.routes.match(r.Method, r.URL.EscapedPath())
	if f != nil {
		h.refuse(w, f)
		return
	}
	r.Pattern = m.action.pattern
	x := &exchange{h: h, w: w, r: r, start: time.Now()}
	x.event.Operation = m.action.route.Operation
	x.run(m)
}
