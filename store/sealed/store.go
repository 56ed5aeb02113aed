package sealed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Options are the options of [New]. Nil and the zero value are safe to use.
type Options struct {
	// AllowPlain lets the store return URLs that were stored before it was sealed. Leave it
	// off once all are sealed: somebody who can write to your database could otherwise replace
	// an envelope by a URL of their own.
	AllowPlain bool
}

// New returns a store that encrypts the URLs that inner keeps. It's durable, fast and safe for
// concurrent use as inner is. It has the optional interfaces that inner has: those of packages
// webhookcfg, store/cache and store/admin.
//
// If a URL can't be decrypted, the error names its client and entity, and wraps [ErrKey] or
// [ErrEnvelope]. A list fails as a whole then. Such a webhook can still be set, unset and
// erased.
func New(inner webhookcfg.Store, keys Keys, o *Options) (webhookcfg.Store, error) {
	if inner == nil || keys == nil {
		return nil, errors.New("sealed: New without a Store or without Keys")
	}
	s := &store{inner: inner, keys: keys}
	if o != nil {
		s.allowPlain = o.AllowPlain
	}
	s.clientLister, _ = inner.(admin.ClientLister)
	s.eraser, _ = inner.(admin.Eraser)
	s.feed, _ = inner.(cache.Feed)
	s.versioner, _ = inner.(cache.Versioner)
	lister, lists := inner.(webhookcfg.Lister)
	notifier, notifies := inner.(cache.Notifier)
	switch {
	case lists && notifies:
		return struct {
			listingStore
			cache.Notifier
		}{listingStore{s, lister}, notifier}, nil
	case lists:
		return listingStore{s, lister}, nil
	case notifies:
		return struct {
			*store
			cache.Notifier
		}{s, notifier}, nil
	}
	return s, nil
}

// store is the part that doesn't depend on the inner store's interfaces. The methods of those
// that inner doesn't have return errors.ErrUnsupported.
type store struct {
	inner      webhookcfg.Store
	keys       Keys
	allowPlain bool

	clientLister admin.ClientLister // nil if inner isn't one, and so are the next three
	eraser       admin.Eraser
	feed         cache.Feed
	versioner    cache.Versioner
}

// Apply implements [webhookcfg.Store].
func (s *store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !c.URL.IsZero() {
		key, err := encrypting(ctx, s.keys, c.Client)
		if err != nil {
			return err
		}
		c.URL = egress.NewURL(key.seal(c.URL.Reveal(), c.Client, c.Scope))
	}
	return s.inner.Apply(ctx, c)
}

// Resolve implements [webhookcfg.Store].
func (s *store) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	hook, err := s.inner.Resolve(ctx, client, entity)
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	return s.open(ctx, client, entity, hook)
}

// open returns a webhook with its URL decrypted.
func (s *store) open(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.Webhook, error) {
	if hook.URL.IsZero() {
		return hook, nil
	}
	scope := webhookcfg.Entity(entity)
	if hook.Source == webhookcfg.SourceBase {
		scope = webhookcfg.All()
	}
	url, err := s.openURL(ctx, client, scope, hook.URL.Reveal())
	if err != nil {
		return webhookcfg.Webhook{}, fmt.Errorf("sealed: URL of client %q, %s: %w", client, place(scope), err)
	}
	hook.URL = egress.NewURL(url)
	return hook, nil
}

func (s *store) openURL(ctx context.Context, client string, scope webhookcfg.Scope, text string) (string, error) {
	if !isEnvelope(text) {
		if s.allowPlain {
			return text, nil
		}
		return "", fmt.Errorf("%w: the URL isn't encrypted, so somebody stored it without the keys: have it set again through the API, which for a default drops what single entities have; or see Options.AllowPlain, if the store wasn't sealed before or to copy it to a sealed one", ErrEnvelope)
	}
	e, err := parseEnvelope(text)
	if err != nil {
		return "", err
	}
	key, err := decrypting(ctx, s.keys, client, e.keyID)
	if err != nil {
		return "", err
	}
	return key.open(e, client, scope)
}

// place names a scope in an error.
func place(scope webhookcfg.Scope) string {
	if scope.IsAll() {
		return "base"
	}
	return fmt.Sprintf("entity %q", scope.Entity())
}

// ListClients implements [admin.ClientLister] if the inner store does.
func (s *store) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if s.clientLister == nil {
		return admin.ClientPage{}, fmt.Errorf("sealed: list of clients: %w", errors.ErrUnsupported)
	}
	return s.clientLister.ListClients(ctx, cursor, limit)
}

// Erase implements [admin.Eraser] if the inner store does.
func (s *store) Erase(ctx context.Context, client string) error {
	if s.eraser == nil {
		return fmt.Errorf("sealed: erase: %w", errors.ErrUnsupported)
	}
	return s.eraser.Erase(ctx, client)
}

// Changes implements [cache.Feed] if the inner store does.
func (s *store) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if s.feed == nil {
		return cache.Changes{}, fmt.Errorf("sealed: changes: %w", errors.ErrUnsupported)
	}
	return s.feed.Changes(ctx, since)
}

// Versions implements [cache.Versioner] if the inner store does.
func (s *store) Versions(ctx context.Context, clients []string) ([]string, error) {
	if s.versioner == nil {
		return nil, fmt.Errorf("sealed: versions: %w", errors.ErrUnsupported)
	}
	return s.versioner.Versions(ctx, clients)
}

type listingStore struct {
	*store
	lister webhookcfg.Lister
}

// List implements [webhookcfg.Lister].
func (s listingStore) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	page, err := s.lister.List(ctx, client, after, limit)
	if err != nil {
		return webhookcfg.Page{}, err
	}
	if page.Base, err = s.open(ctx, client, "", page.Base); err != nil {
		return webhookcfg.Page{}, err
	}
	page.Overrides = slices.Clone(page.Overrides) // the inner store may still use them
	for i := range page.Overrides {
		o := &page.Overrides[i]
		if o.Webhook, err = s.open(ctx, client, o.Entity, o.Webhook); err != nil {
			return webhookcfg.Page{}, err
		}
	}
	return page, nil
}
