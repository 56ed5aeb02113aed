package webhookcfg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Options are the choices of a host. The zero value is a safe default in every
// field. [NewHandler] copies them; later changes have no effect.
type Options struct {
	// BasePath is where the host serves the handler, such as "/hooks": the paths of
	// the interface begin with it. "" where they begin at the root, or where the
	// host strips a prefix before it calls the handler.
	BasePath string

	// VariantAliases are further paths, below BasePath, that serve what the variant
	// with moc_id serves. An alias may end in a slash; a set then needs the slash.
	VariantAliases []string

	// Realm is the realm of the Basic challenge; "" means "webhooks". It is printable
	// ASCII without quotes and backslashes.
	Realm string

	// Reads serves GET: what is in effect for one entity, and, if the store is a
	// [Lister], the overrides page by page. Otherwise GET is answered 405.
	Reads bool

	// ValidEntityID replaces the default syntax of identifiers (1 to 128 of the
	// characters A-Z a-z 0-9 . _ ~ : @ -). Whatever it accepts, an identifier is
	// valid UTF-8 without slashes, backslashes and control characters, and neither
	// "", "." nor "..".
	ValidEntityID func(id string) bool

	// EntityExists says whether an identifier is a valid module configuration of the
	// client; where it is not, the answer is 404. Nil accepts every well-formed
	// identifier: the rule is then the host's to keep.
	EntityExists func(ctx context.Context, client, entity string) (bool, error)

	// Policy says which URLs may be set; nil means the zero Policy, the strictest.
	Policy *egress.Policy

	// Prober checks that a URL can be reached before a set; nil means the default
	// one of Policy. ProbeMode says what its outcome is for. ProbeTimeout bounds one
	// probe and is less than Timeout; zero means 5 s, or half of Timeout if that is
	// less.
	Prober       Prober
	ProbeMode    ProbeMode
	ProbeTimeout time.Duration

	// Timeout bounds the work on one request, from its arrival to its answer; zero
	// means 10 s. It is the deadline of the context that the store, the verifier,
	// the catalogue and the prober get; past it the answer is 503, at once or, where
	// one of them does not keep to its context, a little later (or when it returns,
	// if the ResponseWriter cannot flush). It also bounds how long a body may take to
	// arrive.
	Timeout time.Duration

	// BodyLimit is the largest body of a set in bytes; zero means 16 KiB.
	BodyLimit int64

	// Logger gets one record for each request that reached an operation. Nil is
	// silent.
	Logger *slog.Logger

	// OnEvent is called once for each request that reached an operation and got an
	// answer, after the answer was written. It is called concurrently and must not
	// block.
	OnEvent func(ctx context.Context, e Event)

	// Now is the clock that dates changes; nil means the time at which the request
	// arrived.
	Now func() time.Time
}

const (
	defaultRealm        = "webhooks"
	defaultProbeTimeout = 5 * time.Second
	defaultTimeout      = 10 * time.Second
	defaultBodyLimit    = 16 << 10
)

// complete puts the defaults in place and refuses what cannot work.
func (o *Options) complete() error {
	if o.ProbeTimeout < 0 || o.Timeout < 0 || o.BodyLimit < 0 {
		return errors.New("a limit is negative")
	}
	if int(o.ProbeMode) >= len(probeModes) {
		return fmt.Errorf("unknown %v", o.ProbeMode)
	}
	o.Realm = cmp.Or(o.Realm, defaultRealm)
	if strings.ContainsFunc(o.Realm, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return errors.New("the Realm has a character that a quoted string cannot hold")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, min(defaultProbeTimeout, o.Timeout/2))
	if o.ProbeTimeout >= o.Timeout {
		return errors.New("the ProbeTimeout is not below the Timeout: no probe could fail in time")
	}
	o.BodyLimit = cmp.Or(o.BodyLimit, defaultBodyLimit)
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
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
// as they stand, and resources that would lie within each other.
func (o *Options) checkPaths() error {
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	if o.BasePath != "" && !plainPath(o.BasePath) {
		return errors.New("the BasePath is not a clean absolute path of plain characters")
	}
	roots := []string{configurePath, variantPath}
	for _, alias := range o.VariantAliases {
		root := strings.TrimSuffix(alias, "/")
		if !plainPath(root) {
			return errors.New("a VariantAlias is not a clean absolute path of plain characters")
		}
		for _, other := range roots {
			if strings.HasPrefix(root+"/", other+"/") || strings.HasPrefix(other+"/", root+"/") {
				return errors.New("a VariantAlias overlaps another path of the interface")
			}
		}
		roots = append(roots, root)
	}
	return nil
}

// plainPath reports whether p reads the same escaped and unescaped, cleaned and
// uncleaned, and as a pattern of [http.ServeMux].
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && p != "/" && path.Clean(p) == p &&
		!strings.ContainsFunc(p, func(c rune) bool { return c != '/' && (c > '~' || !entityChars[c]) })
}
