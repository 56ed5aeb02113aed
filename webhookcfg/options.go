package webhookcfg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Options configure a [Handler]. You can leave every field at its zero value, which is a safe
// default. [NewHandler] copies the options, so later changes have no effect.
//
// The handler calls your functions concurrently. A function with a context must return soon
// after the context ends, like a method of [Store].
type Options struct {
	// BasePath is the prefix of all paths, such as "/hooks". Leave it empty if you serve the
	// handler at the root, or if you strip the prefix yourself.
	BasePath string

	// VariantAliases are more paths for the variant with moc_id, below BasePath. If an alias
	// ends in a slash, clients need that slash in a set.
	VariantAliases []string

	// AllScope limits the requests that can reach all entities. By default they all can.
	AllScope AllScope

	// OriginalTarget returns the path and query as the client sent them, before your proxies
	// rewrote them. Your outermost proxy should write them to a header, for
	// [TargetFromHeader]. By default, the handler can only check the target that your server
	// received.
	//
	// The handler refuses a request for all entities (400) unless the client sent exactly the
	// path of the resource, because a proxy may have removed an identifier. Without the
	// header it refuses all of these, so try one through your proxies.
	OriginalTarget func(r *http.Request) string

	// Realm is the realm of the Basic challenge, and defaults to "webhooks". It can have
	// printable ASCII without quotes and backslashes.
	Realm string

	// Reads serves GET, so clients can read the webhook in effect for one entity. If the
	// store is a [Lister], they can also list their overrides page by page. By default, GET
	// gets 405, and Logger a record that names this option.
	Reads bool

	// DeliveryStatus adds "delivery" to the read of one entity, so clients can see whether their
	// notifications arrive. Pass the method
	// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox.Status] if you have that queue, or
	// [example.com/go-webhookcfg/webhookcfg/deliver.Sender.Status] if you have another one, or your own
	// function.
	//
	// The handler calls it with the webhook in effect, if that has a URL, or with the base and
	// an empty entity. An error gets the client 503, and a State or Reason that
	// [DeliveryStatus] doesn't list gets 500.
	DeliveryStatus func(ctx context.Context, client, entity string, hook Webhook) (DeliveryStatus, error)

	// ValidEntityID replaces the default syntax of identifiers: 1 to 128 of the characters
	// A-Z a-z 0-9 . _ ~ : @ -. It's only called with valid UTF-8 that has no slashes,
	// backslashes or control characters. The handler always refuses "", "." and ".." itself.
	ValidEntityID func(id string) bool

	// EntityExists reports whether the client has an entity with this identifier, a valid
	// module configuration. By default the handler accepts every well-formed identifier, and
	// it's up to you not to send for entities that don't exist.
	//
	// If you return false, sets, reads and unsets get 404. If the client set an override
	// while the entity existed, it can still read and unset that. An error gets 503.
	EntityExists func(ctx context.Context, client, entity string) (bool, error)

	// CheckChange refuses changes for reasons of your own, such as the client's plan: return
	// one of Refusals, or an error that wraps one (403). Any other error gets 503.
	//
	// The handler calls it for each set and unset, before it probes the URL and before the
	// store sees the change, whose Time isn't known yet. A call doesn't mean that the change
	// is made: the probe or the store can still fail, and [Handler.Check] changes nothing.
	CheckChange func(ctx context.Context, c Change) error

	// Refusals are all that CheckChange and the store can return. A [Refusal] that isn't
	// listed here is treated as a defect (500).
	Refusals []Refusal

	// Policy says which URLs clients can set. It defaults to the zero Policy, the strictest
	// one.
	Policy *egress.Policy

	// Prober checks that a URL can be reached before the client sets it. It defaults to the
	// prober of Policy. ProbeMode says what happens if it fails.
	Prober    Prober
	ProbeMode ProbeMode
	// ProbeTimeout is the time limit of one probe. It defaults to 5 seconds, or to half of
	// Timeout if that's less, and must be less than Timeout.
	ProbeTimeout time.Duration

	// Timeout is the time limit of one request, from its arrival to its response. It defaults
	// to 10 seconds, and earlier deadlines stay in effect. When it's over, the contexts of
	// your store, verifier, prober and functions end, and the client gets 503 as soon as these
	// return. For bodies and for functions that don't return, see [Handler.ServeHTTP].
	Timeout time.Duration

	// BodyLimit is the maximum size of a set's body in bytes. It defaults to 16 KiB.
	BodyLimit int64

	// Logger gets one record for each event. See OnEvent. By default, nothing is logged.
	Logger *slog.Logger

	// OmitPresentedID leaves [Event.PresentedID] empty. Set it if your users could type a
	// secret into the field for the id. [Event.Source] still says who was refused, if you ask
	// the client for its address. Errors of your verifier that quote the id stay as they are.
	OmitPresentedID bool

	// OnEvent gets an event for each request that reached an operation, after the response
	// was written, and for each call from Go, such as [Handler.Set]. It must not block.
	OnEvent func(ctx context.Context, e Event)

	// Now is the clock for [Change.Time]. It defaults to [time.Now].
	Now func() time.Time
}

const (
	defaultRealm   = "webhooks"
	defaultTimeout = 10 * time.Second
	// defaultProbeTimeout takes the place of the prober's own default.
	defaultProbeTimeout = 5 * time.Second
)

// complete fills in the defaults, and refuses invalid options.
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
	o.VariantAliases, o.Refusals = slices.Clone(o.VariantAliases), slices.Clone(o.Refusals)
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
		return errors.New("ProbeTimeout, Timeout or BodyLimit is negative: leave it 0 for the default")
	case o.ProbeTimeout >= o.Timeout:
		return fmt.Errorf("ProbeTimeout (%v) must be less than Timeout (%v)", o.ProbeTimeout, o.Timeout)
	case o.ProbeMode >= probeModes:
		return fmt.Errorf("unknown ProbeMode %d", o.ProbeMode)
	case o.AllScope >= allScopes:
		return fmt.Errorf("unknown AllScope %d", o.AllScope)
	case strings.ContainsFunc(o.Realm, isUnsafeInText):
		return errors.New("the Realm can have only printable ASCII, without quotes and backslashes")
	case o.BasePath != "" && !plainPath(o.BasePath):
		return fmt.Errorf("BasePath: %q %s", o.BasePath, rulePlainPath)
	}
	return errors.Join(o.Policy.Validate(), o.checkAliases(), o.checkRefusals())
}

// checkAliases refuses an alias that can't be matched literally, or that contains another
// path of the handler, or is contained in one.
func (o *Options) checkAliases() error {
	roots := []string{configurePath, variantPath}
	for _, alias := range o.VariantAliases {
		root := strings.TrimSuffix(alias, "/")
		if !plainPath(root) {
			return fmt.Errorf("VariantAliases: %q %s", alias, rulePlainPath)
		}
		for _, other := range roots {
			if strings.HasPrefix(root+"/", other+"/") || strings.HasPrefix(other+"/", root+"/") {
				return fmt.Errorf("VariantAliases: %q overlaps the path %q: choose a path that neither contains the other nor is part of it", alias, other)
			}
		}
		roots = append(roots, root)
	}
	return nil
}

// rulePlainPath says how a path must look, after the path itself.
const rulePlainPath = `is not a path like "/hooks": start with one slash, leave no segment empty, "." or "..", and use only A-Z a-z 0-9 . _ ~ : @ - /`

// plainPath reports whether p always looks the same: escaped or not, cleaned or not, and as a
// pattern of [net/http.ServeMux].
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && p != "/" && path.Clean(p) == p &&
		!strings.ContainsFunc(p, func(c rune) bool { return c != '/' && (c > '~' || !entityChars[c]) })
}
