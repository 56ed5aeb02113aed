package webhookcfg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Options configure a [Handler]. The zero value is a safe default in every field.
// [NewHandler] copies them; later changes have no effect.
type Options struct {
	// BasePath is the prefix of all paths, such as "/hooks". It is "" if the handler is
	// served at the root, or if the host strips a prefix before it calls the handler.
	BasePath string

	// VariantAliases are further paths, below BasePath, of the variant with moc_id.
	// An alias may end in a slash; a set then needs the slash.
	VariantAliases []string

	// AllScope limits the requests that reach all entities. The zero value serves them
	// as the interface specifies.
	AllScope AllScope

	// OriginalTarget returns the request target, path and query, that the outermost proxy
	// received, before any proxy cleaned or rewrote it; see [TargetFromHeader]. A request
	// reaches all entities only if that target, too, ends in the path of the resource (with
	// the slash after it where AllScope serves that), needs no cleaning and has no query;
	// otherwise, and if it is "", such a request is refused (400). Requests for one entity
	// are not affected. It is called concurrently. If nil, only the target that the server
	// received is checked.
	OriginalTarget func(r *http.Request) string

	// Realm is the realm of the Basic challenge: printable ASCII without quotes and
	// backslashes. "" means "webhooks".
	Realm string

	// Reads serves GET: the webhook in effect for one entity and, if the store is a
	// [Lister], the overrides page by page. If false, the response to GET is 405.
	Reads bool

	// DeliveryStatus adds "delivery" to the read of one entity: whether the notifications
	// for it arrive. It is called in these reads alone, with the webhook in effect, and only
	// if that has a URL. An error gives 503, and a word that the interface does not have
	// gives 500. It must be safe for concurrent use and honour its context, like a [Store].
	// Pass the method Status of a Health of package deliver, or your own function. If nil,
	// reads do not show deliveries.
	DeliveryStatus func(ctx context.Context, client, entity string, hook Webhook) (DeliveryStatus, error)

	// ValidEntityID replaces the default syntax of identifiers (1 to 128 of the
	// characters A-Z a-z 0-9 . _ ~ : @ -). It is called only for valid UTF-8 without
	// slashes, backslashes and control characters, and never for "", "." and "..",
	// which are always refused.
	ValidEntityID func(id string) bool

	// EntityExists reports whether an identifier names a valid module configuration
	// of the client; if not, the response is 404. It must be safe for concurrent use
	// and honour its context, like a [Store]; an error gives 503. If nil, every
	// well-formed identifier is accepted, and the rule is the host's to enforce.
	EntityExists func(ctx context.Context, client, entity string) (bool, error)

	// Policy specifies which URLs may be set. If nil, it is the zero Policy, the
	// strictest.
	Policy *egress.Policy

	// Prober checks that a URL can be reached before a set. If nil, it is the default
	// prober of Policy. ProbeMode specifies the effect of a failure. ProbeTimeout
	// bounds one probe and is less than Timeout; zero means 5 seconds, or half of
	// Timeout if that is less.
	Prober       Prober
	ProbeMode    ProbeMode
	ProbeTimeout time.Duration

	// Timeout bounds one request, from its arrival to its response; zero means 10
	// seconds. It is the deadline of the context of the store, the verifier, the
	// prober, EntityExists and DeliveryStatus, which must honour it: once it has passed, the
	// response is 503 as soon as they return. It also bounds how long a body may take to
	// arrive, if the ResponseWriter supports read deadlines. A deadline of the request's
	// context, and a read deadline of the server or of a middleware, stay in effect.
	Timeout time.Duration

	// BodyLimit is the largest body of a set, in bytes; zero means 16 KiB.
	BodyLimit int64

	// Logger logs one record for each request that reached an operation, and for each call
	// of [Handler.Set] and [Handler.Unset]. If nil, nothing is logged.
	Logger *slog.Logger

	// OmitPresentedID leaves [Event.PresentedID] empty: users type secrets into the wrong
	// field. An error of the verifier that quotes the id stays as it is.
	OmitPresentedID bool

	// OnEvent is called once for each request that reached an operation, after the
	// response was written, and for each call of [Handler.Set] and [Handler.Unset]. It is
	// called concurrently and must not block. If nil, events are dropped.
	OnEvent func(ctx context.Context, e Event)

	// Now is the clock for the times of changes, see [Change.Time]. If nil, it is
	// [time.Now].
	Now func() time.Time
}

// AllScope specifies which requests may reach all entities of a client. It governs
// requests over HTTP, and not [Handler.Set] and [Handler.Unset].
type AllScope uint8

// The values of [Options.AllScope].
const (
	// AllScopeAsSpecified also serves a DELETE of the path with an empty identifier,
	// "…/configure-webhook/", which is what clients and proxies make of a lost one.
	AllScopeAsSpecified AllScope = iota
	// AllScopeExact refuses that path (400).
	AllScopeExact
	// AllScopeRefused refuses every set and unset of all entities (403).
	AllScopeRefused

	allScopes // their number
)

const (
	defaultRealm        = "webhooks"
	defaultProbeTimeout = 5 * time.Second
	defaultTimeout      = 10 * time.Second
	defaultBodyLimit    = 16 << 10
)

// complete sets the defaults and refuses invalid options.
func (o *Options) complete() error {
	if o.ProbeTimeout < 0 || o.Timeout < 0 || o.BodyLimit < 0 {
		return errors.New("negative limit")
	}
	if o.ProbeMode >= probeModes {
		return fmt.Errorf("unknown ProbeMode %d", o.ProbeMode)
	}
	if o.AllScope >= allScopes {
		return fmt.Errorf("unknown AllScope %d", o.AllScope)
	}
	o.Realm = cmp.Or(o.Realm, defaultRealm)
	if strings.ContainsFunc(o.Realm, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return errors.New("character in Realm that a quoted string cannot hold")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, min(defaultProbeTimeout, o.Timeout/2))
	if o.ProbeTimeout >= o.Timeout {
		return errors.New("ProbeTimeout not below Timeout: no probe could fail in time")
	}
	o.BodyLimit = cmp.Or(o.BodyLimit, defaultBodyLimit)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
	o.Policy = o.Policy.Clone()
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if o.Prober == nil {
		prober, err := o.Policy.Prober(&egress.ProberOptions{Timeout: o.ProbeTimeout})
		if err != nil {
			return err
		}
		o.Prober = prober
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o.checkPaths()
}

// checkPaths normalises the base path and refuses paths that cannot be matched
// literally, and resources that would contain each other.
func (o *Options) checkPaths() error {
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	if o.BasePath != "" && !plainPath(o.BasePath) {
		return errors.New("BasePath is not a clean absolute path of plain characters")
	}
	roots := []string{configurePath, variantPath}
	for _, alias := range o.VariantAliases {
		root := strings.TrimSuffix(alias, "/")
		if !plainPath(root) {
			return errors.New("VariantAlias is not a clean absolute path of plain characters")
		}
		for _, other := range roots {
			if strings.HasPrefix(root+"/", other+"/") || strings.HasPrefix(other+"/", root+"/") {
				return errors.New("VariantAlias overlaps another path of the interface")
			}
		}
		roots = append(roots, root)
	}
	return nil
}

// plainPath reports whether p is the same escaped and unescaped, cleaned and
// uncleaned, and as a pattern of [net/http.ServeMux].
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && p != "/" && path.Clean(p) == p &&
		!strings.ContainsFunc(p, func(c rune) bool { return c != '/' && (c > '~' || !entityChars[c]) })
}
