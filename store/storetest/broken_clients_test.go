package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// listsClients is a store that returns another page of clients.
func listsClients(s *simple, other func(page admin.ClientPage, cursor string) admin.ClientPage) broken {
	return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
		page, err := s.ListClients(ctx, cursor, limit)
		return other(page, cursor), err
	}}
}

// omits is a store that does not list some clients.
func omits(s *simple, some func(configuration) bool) broken {
	return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
		s.mu.RLock()
		defer s.mu.RUnlock()
		page.Clients = slices.DeleteFunc(page.Clients, func(client string) bool { return some(s.clients[client]) })
		return page
	})
}

func brokenClients() []flaw {
	const walk, once, ended = "clients are listed page by page", "clients are listed once", "clients are not listed with an ended context"
	const invalid = "clients are not listed for invalid arguments"
	return []flaw{
		{"ends a list of clients after a page", walk, func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
				page.Next = ""
				return page
			})
		}, nil},
		{"lists 2,000 clients", walk, func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
				s.mu.RLock()
				defer s.mu.RUnlock()
				if all := slices.Sorted(maps.Keys(s.clients)); len(all) > 2000 {
					page.Clients = slices.DeleteFunc(page.Clients, func(client string) bool { return client >= all[2000] })
				}
				return page
			})
		}, nil},
		{"ends a list of clients never", walk, func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, cursor string) admin.ClientPage {
				if page.Next == "" {
					page.Next = "after \xff" + cursor
				}
				return page
			})
		}, nil},
		{"lists a client more than the limit", walk, func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
				return s.ListClients(ctx, cursor, max(limit, limit+1))
			}}
		}, nil},
		{"repeats the last client of a page", once, func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
				if n := len(page.Clients); n > 1 && page.Next != "" {
					page.Next = "after " + page.Clients[n-2]
				}
				return page
			})
		}, nil},
		{"lists no clients without a base", once, func(s *simple) webhookcfg.Store {
			return omits(s, func(cfg configuration) bool { return cfg.base.Source == webhookcfg.SourceNone })
		}, nil},
		{"lists no clients without an override", once, func(s *simple) webhookcfg.Store {
			return omits(s, func(cfg configuration) bool { return len(cfg.overrides) == 0 })
		}, nil},
		{"counts the clients before a page", "clients are listed once while others change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
				all, err := s.ListClients(ctx, "", 1_000_000)
				from, _ := strconv.Atoi(cursor)
				rest := all.Clients[min(from, len(all.Clients)):]
				if len(rest) <= limit {
					return admin.ClientPage{Clients: rest}, err
				}
				return admin.ClientPage{Clients: rest[:limit], Next: strconv.Itoa(from + limit)}, err
			}}
		}, nil},
		{"lists a client for limit 0", invalid, func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
				return s.ListClients(ctx, cursor, max(limit, 1))
			}}
		}, nil},
		{"starts again after an unknown cursor", invalid, func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
				page, err := s.ListClients(ctx, cursor, limit)
				if err != nil && limit > 0 {
					return s.ListClients(ctx, "", limit)
				}
				return page, err
			}}
		}, nil},
		{"ignores the context of a list of clients", ended, func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(_ context.Context, cursor string, limit int) (admin.ClientPage, error) {
				return s.ListClients(context.Background(), cursor, limit)
			}}
		}, nil},
		{"lists the clients that it has read when the context ends", ended, func(s *simple) webhookcfg.Store {
			return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
				page, err := s.ListClients(ctx, cursor, limit)
				if err == nil && ctx.Err() != nil {
					page.Clients, page.Next = page.Clients[:len(page.Clients)/2], ""
				}
				return page, err
			}}
		}, nil},
	}
}

func brokenErasers() []flaw {
	const nothing, ended = "eraser changes no webhook", "eraser refuses an ended context"
	return []flaw{
		{"erases clients that have something set", nothing, func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(_ context.Context, client string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.clients, client)
				return nil
			}}
		}, nil},
		{"erases clients without a base", nothing, func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(_ context.Context, client string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.clients[client].base.Source == webhookcfg.SourceNone {
					delete(s.clients, client)
				}
				return nil
			}}
		}, nil},
		{"erases other clients, too", nothing, func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(_ context.Context, client string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				maps.DeleteFunc(s.clients, func(name string, _ configuration) bool {
					return s.clients[client].isEmpty() && len(name) > len(client) && name[:len(client)] == client
				})
				return nil
			}}
		}, nil},
		{"refuses to erase a client with webhooks", nothing, func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(_ context.Context, client string) error {
				if !s.clients[client].isEmpty() {
					return fmt.Errorf("%q has webhooks", client)
				}
				return nil
			}}
		}, nil},
		{"erases the changes of a client from its feed", "eraser hides no change from a feed", func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(ctx context.Context, client string) error {
				s.mu.Lock()
				for n, name := range s.changed {
					if name == client {
						s.changed[n] = "erased"
					}
				}
				s.mu.Unlock()
				return s.Erase(ctx, client)
			}}
		}, nil},
		{"counts versions from 0 after an erase", "eraser hides no change from a versioner", func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(ctx context.Context, client string) error {
				s.mu.Lock()
				delete(s.versions, client)
				s.mu.Unlock()
				return s.Erase(ctx, client)
			}}
		}, nil},
		{"erases a client without a name", "eraser refuses an empty client", func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(ctx context.Context, client string) error {
				if client == "" {
					return nil
				}
				return s.Erase(ctx, client)
			}}
		}, nil},
		{"ignores the context of an erase", ended, func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(_ context.Context, client string) error {
				return s.Erase(context.Background(), client)
			}}
		}, nil},
	}
}
