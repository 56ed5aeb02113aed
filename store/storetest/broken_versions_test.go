package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

func brokenVersions() []flaw {
	return []flaw{
		{"sorts the versions by client", "versioner keeps to the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.Sorted(slices.Values(clients)))
			}}
		}, nil},
		{"has no version of unknown clients", "versioner keeps to the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.DeleteFunc(slices.Clone(clients), func(client string) bool {
					return s.clients[client].base.Source == 0 && s.clients[client].overrides == nil
				}))
			}}
		}, nil},
		{"has a version for each configuration", "versioner has another version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string {
				cfg := s.clients[client]
				return fmt.Sprint(cfg.base.URL.Reveal(), len(cfg.overrides), cfg.overrides["e1"].URL.Reveal())
			})
		}, nil},
		{"counts the changes of all", "versioner has another version after a change", func(s *simple) webhookcfg.Store {
			var generation sync.Map
			st := versioned(s, func(client string) string {
				n, _ := generation.LoadOrStore(client, new(atomic.Int64))
				return strconv.FormatInt(n.(*atomic.Int64).Load(), 10)
			})
			st.apply = func(ctx context.Context, c webhookcfg.Change) error {
				if n, ok := generation.Load(c.Client); ok && c.Scope.IsAll() {
					n.(*atomic.Int64).Add(1)
				}
				return s.Apply(ctx, c)
			}
			return st
		}, nil},
		{"counts the changes through this handle", "versioner has another version after a change through another handle", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error { return cmp.Or(apply(), count()) })
		}, nil},
		{"begins to count versions anew when reopened", "versioner has another version when reopened and changed", asIs, func(s *simple) *simple {
			next := s.reopened()
			clear(next.versions)
			return next
		}},
		{"counts before it makes the change", "versioner holds beside a writer", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error {
				_ = count()
				yield()
				return apply()
			})
		}, nil},
		{"counts after it made the change", "versioner holds beside a writer", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error {
				err := apply()
				yield()
				_ = count()
				return err
			})
		}, nil},
		{"has another version each time", "versioner keeps versions while nothing changes", func(s *simple) webhookcfg.Store {
			var asked atomic.Int64
			return versioned(s, func(string) string { return strconv.FormatInt(asked.Add(1), 10) })
		}, nil},
		{"gives versions to those who are gone", "versioner refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(_ context.Context, clients []string) ([]string, error) {
				return s.Versions(context.Background(), clients)
			}}
		}, nil},
	}
}

// versioned is a store with other versions.
func versioned(s *simple, version func(client string) string) broken {
	return broken{simple: s, versions: func(_ context.Context, clients []string) (all []string, _ error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, client := range clients {
			all = append(all, version(client))
		}
		return all, nil
	}}
}

// countsVersions counts changes beside the store, in the order that both says.
func countsVersions(s *simple, both func(apply, count func() error) error) webhookcfg.Store {
	var changes atomic.Int64
	st := versioned(s, func(string) string { return strconv.FormatInt(changes.Load(), 10) })
	st.apply = func(ctx context.Context, c webhookcfg.Change) error {
		return both(func() error { return s.Apply(ctx, c) }, func() error {
			changes.Add(1)
			return nil
		})
	}
	return st
}
