package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// brokenContexts are flaws that show when the context of a call has ended, or ends.
func brokenContexts() []flaw {
	const list, errors = "lister refuses an ended context", "errors hold no URL"
	return []flaw{
		{"ignores the context of a list", list, func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(_ context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				return s.List(context.Background(), client, after, limit)
			}}
		}, nil},
		{"lists without an error what it has read when the context ends", list, func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if err == nil && ctx.Err() != nil {
					page.Overrides, page.Next = page.Overrides[:len(page.Overrides)/2], ""
				}
				return page, err
			}}
		}, nil},
		{"resolves to nothing when the context ends", "15 an ended context changes nothing", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				hook, err := s.Resolve(ctx, client, entity)
				if err == nil && ctx.Err() != nil {
					return webhookcfg.Webhook{}, nil
				}
				return hook, err
			}}
		}, nil},
		{"resolves to the base when the context ends", "15 an ended context changes nothing", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				hook, err := s.Resolve(ctx, client, entity)
				if err == nil && ctx.Err() != nil {
					return s.Resolve(context.Background(), client, "\x00")
				}
				return hook, err
			}}
		}, nil},
		{"reports without an error what it has read when the context ends", "feed refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				changes, err := s.Changes(ctx, since)
				if err == nil && ctx.Err() != nil {
					changes.Clients = changes.Clients[:len(changes.Clients)/2]
				}
				return changes, err
			}}
		}, nil},
		{"returns empty versions when the context ends", "versioner refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				versions, err := s.Versions(ctx, clients)
				if err == nil && ctx.Err() != nil {
					clear(versions)
				}
				return versions, err
			}}
		}, nil},
		{"waits for a change", "feed waits for no change", waitsForChange, nil},
		{"quotes the URL of an interrupted change", errors, func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				err := s.Apply(ctx, c)
				if err == nil && ctx.Err() != nil {
					return fmt.Errorf("set %s: %w", c.URL.Reveal(), ctx.Err())
				}
				return err
			}}
		}, nil},
		{"quotes the statement of an interrupted set of all", errors, func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				err := s.Apply(ctx, c)
				if err == nil && c.Scope.IsAll() && ctx.Err() != nil {
					return fmt.Errorf("UPDATE clients SET url = %q: %w", c.URL.Reveal(), ctx.Err())
				}
				return err
			}}
		}, nil},
		{"quotes the URL of an interrupted change, except in one case", "03 an interrupted change is whole or absent", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(s.Apply(ctx, c), ctx.Err()); err != nil && c.Client != "acme" {
					return fmt.Errorf("set %s: %w", c.URL.Reveal(), err)
				}
				return nil
			}}
		}, nil},
		{"quotes the URL that it resolved before the context ended", errors, func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				hook, err := s.Resolve(ctx, client, entity)
				if err != nil {
					err = fmt.Errorf("scan of %s: %w", hook.URL.Reveal(), err)
				}
				return hook, err
			}}
		}, nil},
		{"quotes the URLs that it listed before the context ended", errors, func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				for _, o := range page.Overrides {
					if err != nil {
						err = fmt.Errorf("row %s: %w", o.Webhook.URL.Reveal(), err)
					}
				}
				return page, err
			}}
		}, nil},
		{"quotes the bases of the clients that it reports", errors, func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				changes, err := s.Changes(ctx, since)
				if err != nil {
					s.mu.RLock()
					defer s.mu.RUnlock()
					for _, cfg := range slices.Collect(maps.Values(s.clients)) {
						err = fmt.Errorf("row %s: %w", cfg.base.URL.Reveal(), err)
					}
				}
				return changes, err
			}}
		}, nil},
	}
}

// waitsForChange waits, in a call that would report nothing, until there is a change.
func waitsForChange(s *simple) webhookcfg.Store {
	return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		changed := s.Notify(waiting)
		changes, err := s.Changes(ctx, since)
		if err != nil || changes.Reset || len(changes.Clients) > 0 {
			return changes, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return s.Changes(ctx, since)
	}}
}
