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
// [NewHandler] copies them; later changes have no effect. All functions are called
// concurrently. Those with a context must return soon after it ends, like a [Store].
type Options struct {
	// BasePath is the prefix of all paths, such as "/hooks". Leave it empty if you serve
	// the handler at the root, or strip the prefix yourself.
	BasePath string

	// VariantAliases are further paths, below BasePath, of the variant with moc_id.
	// If an alias ends in a slash, a set needs the slash.
	VariantAliases []string

	// AllScope limits the requests that reach all entities. By default all are served.
	AllScope AllScope

	// OriginalTarget returns the path and query that the client sent, before any proxy
	// rewrote them. Let your outermost proxy write them to a header, and read it with
	// [TargetFromHeader]. A request for all entities is then refused (400) if the client sent
	// anything but the plain path of the resource, since a proxy may have removed an
	// identifier. Requests for one entity are not affected. By default the handler checks
	// only the target that your server received.
	OriginalTarget func(r *http.Request) string

	// Realm is the realm of the Basic challenge: printable ASCII without quotes and
	// backslashes. It defaults to "webhooks".
	Realm string

	// Reads serves GET: the webhook in effect for one entity and, if the store is a
	// [Lister], the overrides page by page. By default the response to GET is 405.
	Reads bool

	// DeliveryStatus adds "delivery" to the read of one entity: whether the notifications
	// for it arrive. Pass the method Status of a Health of package deliver, or your own
	// function. It is called with the webhook in effect, if that has a URL. An error gives
	// 503, and a word that the interface does not have gives 500. Package portal also asks
	// for a base, with an empty entity.
	DeliveryStatus func(ctx context.Context, client, entity string, hook Webhook) (DeliveryStatus, error)

	// ValidEntityID replaces the default syntax of identifiers: 1 to 128 of the characters
	// A-Z a-z 0-9 . _ ~ : @ -. It gets only valid UTF-8 without slashes, backslashes and
	// control characters, and never "", "." or "..", which are always refused.
	ValidEntityID func(id string) bool

	// EntityExists reports whether an identifier names an entity of the client, a valid module
	// configuration. If not, sets, reads and unsets get 404. Only an override that was set while
	// the entity existed can still be read and unset. An error gives 503. By default every
	// well-formed identifier is accepted.
	EntityExists func(ctx context.Context, client, entity string) (bool, error)

	// Policy specifies which URLs may be set. It defaults to the zero Policy, the strictest.
	Policy *egress.Policy

	// Prober checks that a URL can be reached before a set. It defaults to the prober of
	// Policy. ProbeMode specifies the effect of a failure.
	Prober    Prober
	ProbeMode ProbeMode
	// ProbeTimeout bounds one probe and must be less than Timeout. It defaults to 5 seconds,
	// or half of Timeout if that is less.
	ProbeTimeout time.Duration

	// Timeout bounds one request, from its arrival to its response, and defaults to 10
	// seconds. The contexts of the store, the verifier, the prober and the functions here
	// end with it, and the response is 503 as soon as they return. The body must arrive in
	// that time too, if the ResponseWriter supports read deadlines. Earlier deadlines of the
	// request's context, the server or a middleware stay in effect.
	Timeout time.Duration

	// BodyLimit is the largest body of a set, in bytes. It defaults to 16 KiB.
	BodyLimit int64

	// Logger logs one record for each event; see OnEvent. By default nothing is logged.
	Logger *slog.Logger

	// OmitPresentedID leaves [Event.PresentedID] empty, since users type secrets into the
	// wrong field. An error of the verifier that quotes the id stays as it is.
	OmitPresentedID bool

	// OnEvent is called once for each request that reached an operation, after the response
	// was written, and for each call from Go, such as [Handler.Set]. It must not block.
	OnEvent func(ctx context.Context, e Event)

	// Now is the clock for the times of changes, see [Change.Time]. It defaults to
	// [time.Now].
	Now func() time.Time
}

// AllScope specifies which requests over HTTP may reach all entities of a client.
// [Handler.Set] and [Handler.Unset] always may.
type AllScope uint8

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
	o.setDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	if o.Prober == nil {
		prober, err := o.Policy.Prober(&egress.ProberOptions{Timeout: o.ProbeTimeout})
		if err != nil {
			return err
		}
		o.Prober = prober
	}
	return nil
}

func (o *Options) setDefaults() {
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	o.Realm = cmp.Or(o.Realm, defaultRealm)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, min(defaultProbeTimeout, o.Timeout/2))
	o.BodyLimit = cmp.Or(o.BodyLimit, defaultBodyLimit)
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
	o.Policy = o.Policy.Clone()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func (o *Options) validate() error {
	switch {
	case o.ProbeTimeout < 0 || o.Timeout < 0 || o.BodyLimit < 0:
		return errors.New("negative limit")
	case o.ProbeTimeout >= o.Timeout:
		return errors.New("ProbeTimeout not below Timeout: no probe could fail in time")
	case o.ProbeMode >= probeModes:
		return fmt.Errorf("unknown ProbeMode %d", o.ProbeMode)
	case o.AllScope >= allScopes:
		return fmt.Errorf("unknown AllScope %d", o.AllScope)
	case strings.ContainsFunc(o.Realm, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }):
		return errors.New("character in Realm that a quoted string cannot hold")
	case o.BasePath != "" && !plainPath(o.BasePath):
		return errors.New("BasePath is not a clean absolute path of plain characters")
	}
	return errors.Join(o.Policy.Validate(), o.checkAliases())
}

// checkAliases refuses aliases that cannot be matched literally, or that would contain another
// path of the interface.
func (o *Options) checkAliases() error {
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
