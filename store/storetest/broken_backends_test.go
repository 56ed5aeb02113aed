package storetest_test

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// brokenBackends are what stores on a REST service, on documents, on wide columns, in a cache or
// in a file per client get wrong.
func brokenBackends() []flaw {
	return slices.Concat(brokenReopenings(), brokenKeys(), brokenLimits(), brokenSharing(), brokenErasures())
}

// brokenReopenings are stores that lose or change something that Resolve doesn't need, or that
// only some names and bases have, once they're opened again.
func brokenReopenings() []flaw {
	const reopened, crashed = "02 a reopened store has kept the change", "02 a store has kept the change after a crash"
	all := []flaw{
		{"lists no overrides from before it was reopened", reopened, listsNewOnly, remembersOld},
		{"lists no overrides from before a crash", crashed, listsNewOnly, remembersOld},
		{"lists no clients from before it was reopened", reopened, listsNewClients, remembersOld},
		{"lists no clients from before a crash", crashed, listsNewClients, remembersOld},
		{"keeps 2,047 bytes of the URLs of bases when reopened", reopened, asIs, func(s *simple) *simple {
			next := s.reopened()
			for client, cfg := range next.clients {
				text := cfg.base.URL.Reveal()
				cfg.base.URL = egress.NewURL(text[:min(len(text), 2047)])
				next.clients[client] = cfg
			}
			return next
		}},
		{"lists nothing after an interrupted set of all", "03 an interrupted change is whole or absent", listsInterrupted, nil},
	}
	for name, rename := range map[string]func(string) string{
		"cut after 128 bytes": func(name string) string { return name[:min(len(name), 128)] },
		"without spaces":      func(name string) string { return cmp.Or(strings.TrimSpace(name), name) },
		"in lower case":       strings.ToLower,
		"decomposed":          func(name string) string { return strings.ReplaceAll(name, "é", "e\u0301") },
		"as base names":       path.Base,
		"without extensions":  func(name string) string { return cmp.Or(strings.TrimSuffix(name, path.Ext(name)), name) },
	} {
		all = append(all, flaw{"reads names of clients " + name + " when reopened", reopened, asIs, func(s *simple) *simple {
			next := s.reopened()
			clear(next.clients)
			for client, cfg := range s.clients {
				next.clients[rename(client)] = cfg.clone()
			}
			return next
		}})
	}
	return all
}

// remembersOld returns the reopened store, which remembers what it had.
func remembersOld(s *simple) *simple {
	next := s.reopened()
	for client, cfg := range next.clients {
		next.named.Store(client, true)
		for entity := range cfg.overrides {
			next.named.Store([2]string{client, entity}, true)
		}
	}
	return next
}

// listsNewOnly lists only overrides that were not there when the store was opened.
func listsNewOnly(s *simple) webhookcfg.Store {
	return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
		page, err := s.List(ctx, client, after, limit)
		page.Overrides = slices.DeleteFunc(page.Overrides, func(o webhookcfg.Override) bool {
			_, old := s.named.Load([2]string{client, o.Entity})
			return old
		})
		return page, err
	}}
}

// listsNewClients does the same for clients.
func listsNewClients(s *simple) webhookcfg.Store {
	return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
		page.Clients = slices.DeleteFunc(page.Clients, func(client string) bool {
			_, old := s.named.Load(client)
			return old
		})
		return page
	})
}

// listsInterrupted lists nothing after an interrupted set of all.
func listsInterrupted(s *simple) webhookcfg.Store {
	var gone sync.Map
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			err := s.Apply(ctx, c)
			if err != nil && c.Scope.IsAll() && c.Validate() == nil {
				gone.Store(c.Client, true)
			}
			return err
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			page, err := s.List(ctx, client, after, limit)
			if _, ok := gone.Load(client); ok {
				page.Overrides = nil
			}
			return page, err
		},
	}
}

// brokenKeys are stores that keep different names under the same key.
func brokenKeys() []flaw {
	const differ, isolated = "12 names differ by any byte", "12 clients are isolated"
	var all []flaw
	entities := func(name string, key func(string) string) {
		all = append(all, flaw{name, differ, func(s *simple) webhookcfg.Store { return keys(s, unchanged, key) }, nil})
	}
	clients := func(name string, key func(string) string) {
		all = append(all, flaw{name, differ, func(s *simple) webhookcfg.Store { return keys(s, key, unchanged) }, nil})
	}
	for _, separator := range []string{"-", "_", "|", "@", ",", " ", "::", "%2F", "="} {
		all = append(all, flaw{"joins client and entity by " + url.PathEscape(separator) + ", and keeps the base under the client", differ, func(s *simple) webhookcfg.Store {
			return sharesKeys(s, func(client string) string { return client }, separator)
		}, nil})
	}
	all = append(all, flaw{"keeps bases as overrides of the client base", differ, func(s *simple) webhookcfg.Store {
		return sharesKeys(s, func(client string) string { return "base/" + client }, "/")
	}, nil})
	for name, key := range map[string]func(string) string{
		"/ as %2F":     replaces("/", "%2F"),
		"/ as _2F":     replaces("/", "_2F"),
		"/ as ~1":      replaces("/", "~1"),
		"/ as __":      replaces("/", "__"),
		"/ as -":       replaces("/", "-"),
		". as ．":       replaces(".", "．"),
		"$ as ＄":       replaces("$", "＄"),
		": as %3A":     replaces(":", "%3A"),
		"a space as +": replaces(" ", "+"),
		`a zero as \0`: replaces("\x00", `\0`),
		"é as \\u00e9": func(name string) string {
			return strings.ReplaceAll(strings.Trim(strconv.QuoteToASCII(name), `"`), `\\`, `\`)
		},
		"once too little": func(name string) string {
			plain, err := url.PathUnescape(name)
			return cmp.Or(map[bool]string{true: plain}[err == nil], name)
		},
	} {
		entities("escapes "+name+", of an entity", key)
		if !strings.Contains(name, "zero") {
			clients("escapes "+name+", of a client", key)
		}
	}
	for name, key := range map[string]func(string) string{
		"without invisible characters": func(name string) string {
			return cmp.Or(strings.NewReplacer("\u00ad", "", "\u200b", "", "\u200d", "", "\u2060", "", "\ufeff", "").Replace(name), name)
		},
		"with full-width characters as others": func(name string) string {
			return strings.Map(func(r rune) rune {
				if r > 0xff00 && r < 0xff5f {
					return r - 0xfee0
				}
				return r
			}, name)
		},
		"as numbers": func(name string) string {
			if n, err := strconv.ParseFloat(name, 64); err == nil {
				return fmt.Sprint(n)
			}
			return name
		},
		"as UUIDs": func(name string) string {
			if len(name) >= 32 && strings.Trim(strings.ToLower(name), "0123456789abcdef-") == "" {
				return strings.ReplaceAll(strings.ToLower(name), "-", "")
			}
			return name
		},
		"as cleaned paths": path.Clean,
		"as 255 bytes, once escaped": func(name string) string {
			name = url.QueryEscape(name)
			return name[:min(len(name), 255)]
		},
		"as formats": func(name string) string { return fmt.Sprintf(name, "x") },
		"up to a ?":  func(name string) string { before, _, _ := strings.Cut(name, "?"); return cmp.Or(before, name) },
	} {
		entities("reads names of entities "+name, key)
		clients("reads names of clients "+name, key)
	}
	for name, sum := range map[string]func([]byte) uint32{
		"CRC-32":           crc32.ChecksumIEEE,
		"CRC-32C":          func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) },
		"Adler-32":         adler32.Checksum,
		"FNV-1":            func(b []byte) uint32 { h := fnv.New32(); _, _ = h.Write(b); return h.Sum32() },
		"FNV-1a":           func(b []byte) uint32 { h := fnv.New32a(); _, _ = h.Write(b); return h.Sum32() },
		"a sum times 31":   func(b []byte) uint32 { return polynomial(b, 0, 31) },
		"a sum times 33":   func(b []byte) uint32 { return polynomial(b, 5381, 33) },
		"a part of MD5":    func(b []byte) uint32 { sum := md5.Sum(b); return binary.BigEndian.Uint32(sum[:]) },
		"a part of SHA-1":  func(b []byte) uint32 { sum := sha1.Sum(b); return binary.BigEndian.Uint32(sum[:]) },
		"a part of SHA256": func(b []byte) uint32 { sum := sha256.Sum256(b); return binary.BigEndian.Uint32(sum[:]) },
	} {
		entities("keeps entities by "+name, func(name string) string { return fmt.Sprint(sum([]byte(name))) })
		clients("keeps clients by "+name, func(name string) string { return fmt.Sprint(sum([]byte(name))) })
	}
	for _, end := range []string{".tmp", ".new", ".bak", ".lock", "~", "-journal"} {
		all = append(all, flaw{"writes the file of a client through one that ends in " + end, isolated, func(s *simple) webhookcfg.Store {
			return plain{broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				err := s.Apply(ctx, c)
				if err == nil {
					s.mu.Lock()
					defer s.mu.Unlock()
					delete(s.clients, c.Client+end)
				}
				return err
			}}}
		}, nil})
	}
	return append(all,
		flaw{"keeps 1,100 bytes of a client and an entity", differ, func(s *simple) webhookcfg.Store {
			cut := func(client, entity string) string { return entity[:min(len(entity), max(1, 1100-len(client)))] }
			return broken{
				simple: s,
				apply: func(ctx context.Context, c webhookcfg.Change) error {
					if entity := c.Scope.Entity(); entity != "" {
						c.Scope = webhookcfg.Entity(cut(c.Client, entity))
					}
					return s.Apply(ctx, c)
				},
				resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
					return s.Resolve(ctx, client, cut(client, entity))
				},
			}
		}, nil},
		flaw{"changes the entity of a field's path", differ, func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				if name, found := strings.CutSuffix(c.Scope.Entity(), ".url"); found && cfg.overrides[name].Source == webhookcfg.SourceOverride {
					next := cfg.after(c)
					hook := next.overrides[name]
					hook.URL = c.URL
					next.overrides[name] = hook
					return next
				}
				return cfg.after(c)
			})
		}, nil},
		flaw{"runs an entity's name as a part of a statement", differ, func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				next := cfg.after(c)
				if strings.Contains(c.Scope.Entity(), "' OR '1'='1") && isUnset(c) {
					next.overrides = nil
				}
				return next
			})
		}, nil},
	)
}

// plain is a store without optional interfaces.
type plain struct{ webhookcfg.Store }

// keys is a store that replaces names, if they aren't empty.
func keys(s *simple, client, entity func(name string) string) webhookcfg.Store {
	named := func(key func(string) string) func(string) string {
		return func(name string) string {
			if name == "" {
				return name
			}
			return key(name)
		}
	}
	return plain{renames(s, named(client), named(entity))}
}

func replaces(before, after string) func(string) string {
	return func(name string) string { return strings.ReplaceAll(name, before, after) }
}

func polynomial(b []byte, sum, factor uint32) uint32 {
	for _, c := range b {
		sum = sum*factor + uint32(c)
	}
	return sum
}

// sharesKeys is a store in which a base and an override can have the same key. The URL is then
// that of the last one set.
func sharesKeys(s *simple, baseKey func(client string) string, separator string) webhookcfg.Store {
	key := func(client string, scope webhookcfg.Scope) string {
		if scope.IsAll() {
			return baseKey(client)
		}
		return client + separator + scope.Entity()
	}
	find := func(client string, scope webhookcfg.Scope, own webhookcfg.Webhook) webhookcfg.Webhook {
		if last, ok := s.named.Load(key(client, scope)); ok && last.(webhookcfg.Change).Scope.IsAll() != scope.IsAll() {
			own.URL = last.(webhookcfg.Change).URL
		}
		return own
	}
	return plain{broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			err := s.Apply(ctx, c)
			if err == nil && isSet(c) {
				s.named.Store(key(c.Client, c.Scope), c)
			}
			return err
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			hook, err := s.Resolve(ctx, client, entity)
			switch hook.Source {
			case webhookcfg.SourceBase:
				hook = find(client, webhookcfg.All(), hook)
			case webhookcfg.SourceOverride:
				hook = find(client, webhookcfg.Entity(entity), hook)
			}
			return hook, err
		},
	}}
}

// brokenLimits are stores with a limit in bytes.
func brokenLimits() (all []flaw) {
	const whole, walk, kept = "01 a change is applied whole, and nothing else", "lister walks page by page", "02 a reopened store has kept the change"
	for _, limit := range []int{256 << 10, 400 << 10, 1 << 20, 2 << 20} {
		all = append(all,
			flaw{fmt.Sprintf("lists %d bytes of a page", limit), walk, func(s *simple) webhookcfg.Store {
				return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
					left := limit
					for n, o := range page.Overrides {
						if left -= size(o); left < 0 {
							page.Overrides, page.Next = page.Overrides[:n], ""
							break
						}
					}
					return page
				})
			}, nil},
			flaw{fmt.Sprintf("refuses an override after %d bytes of a client", limit), whole, func(s *simple) webhookcfg.Store {
				var used sync.Map
				return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
					n, _ := used.LoadOrStore(c.Client, new(atomic.Int64))
					if n.(*atomic.Int64).Add(int64(size(webhookcfg.Override{Entity: c.Scope.Entity(), Webhook: webhookcfg.Webhook{URL: c.URL}}))) > int64(limit) {
						return fmt.Errorf("the document is too large")
					}
					return s.Apply(ctx, c)
				}}
			}, nil},
			flaw{fmt.Sprintf("keeps %d bytes of a client when reopened", limit), kept, asIs, func(s *simple) *simple {
				next := s.reopened()
				for _, cfg := range next.clients {
					left := limit
					for _, entity := range slices.Sorted(maps.Keys(cfg.overrides)) {
						if left -= size(webhookcfg.Override{Entity: entity, Webhook: cfg.overrides[entity]}); left < 0 {
							delete(cfg.overrides, entity)
						}
					}
				}
				return next
			}})
	}
	return all
}

func size(o webhookcfg.Override) int { return len(o.Entity) + len(o.Webhook.URL.Reveal()) }

// brokenSharing are stores that share memory, locks, contexts or rows with others.
func brokenSharing() []flaw {
	const walk = "clients are listed page by page"
	return []flaw{
		{"sorts the clients that it is asked for", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				slices.Sort(clients)
				return s.Versions(ctx, clients)
			}}
		}, nil},
		{"returns the same changes to all callers", "feed accepts a cursor again", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, since string) cache.Changes {
				if opening, digits, _ := strings.Cut(since, "."); opening == s.opening {
					n, _ := strconv.Atoi(digits)
					changes.Clients = s.changed[n:]
				}
				return changes
			})
		}, nil},
		{"returns the same clients to all callers", "clients are listed once", func(s *simple) webhookcfg.Store {
			var pages sync.Map
			return broken{
				simple: s,
				apply: func(ctx context.Context, c webhookcfg.Change) error {
					defer pages.Clear()
					return s.Apply(ctx, c)
				},
				clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
					page, err := s.ListClients(ctx, cursor, limit)
					if err != nil {
						return page, err
					}
					page.Clients = slices.Clone(page.Clients)
					shared, _ := pages.LoadOrStore(fmt.Sprint(cursor, limit), page)
					return shared.(admin.ClientPage), nil
				},
			}
		}, nil},
		{"locks a client, but writes all of them", "14 no concurrent change is lost", func(s *simple) webhookcfg.Store {
			locks, _ := s.named.LoadOrStore("locks", new(sync.Map))
			return plain{broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
					return err
				}
				lock, _ := locks.(*sync.Map).LoadOrStore(c.Client, newGate())
				lock.(gate).Lock()
				defer lock.(gate).Unlock()
				s.mu.RLock()
				all := make(map[string]configuration)
				for client, cfg := range s.clients {
					all[client] = cfg.clone()
				}
				s.mu.RUnlock()
				all[c.Client] = all[c.Client].clone().after(c)
				pause()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.clients = all
				return nil
			}}}
		}, nil},
		{"works only while the context of its first call lasts", "04 set of one gives it an override", func(s *simple) webhookcfg.Store {
			var first atomic.Pointer[context.Context]
			alive := func(ctx context.Context) error {
				first.CompareAndSwap(nil, &ctx)
				return (*first.Load()).Err()
			}
			return broken{
				simple: s,
				apply: func(ctx context.Context, c webhookcfg.Change) error {
					return cmp.Or(alive(ctx), s.Apply(ctx, c))
				},
				resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
					if err := alive(ctx); err != nil {
						return webhookcfg.Webhook{}, err
					}
					return s.Resolve(ctx, client, entity)
				},
			}
		}, nil},
		{"lists a client once for each caller who was the first to change it", walk, func(s *simple) webhookcfg.Store {
			var mu sync.Mutex
			known, twice := make(map[string]bool), make(map[string]bool)
			st := listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
				mu.Lock()
				defer mu.Unlock()
				for _, client := range slices.Clone(page.Clients) {
					if twice[client] {
						page.Clients = append(page.Clients, client)
					}
				}
				return page
			})
			st.apply = func(ctx context.Context, c webhookcfg.Change) error {
				mu.Lock()
				before := known[c.Client]
				mu.Unlock()
				pause()
				err := s.Apply(ctx, c)
				mu.Lock()
				defer mu.Unlock()
				twice[c.Client] = twice[c.Client] || !before && known[c.Client]
				known[c.Client] = true
				return err
			}
			return st
		}, nil},
		{"lists a client once for each 1,000 overrides", "01 a change is applied whole, and nothing else", func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, _ string) admin.ClientPage {
				s.mu.RLock()
				defer s.mu.RUnlock()
				for _, client := range slices.Clone(page.Clients) {
					for range len(s.clients[client].overrides) / 1000 {
						page.Clients = append(page.Clients, client)
					}
				}
				return page
			})
		}, nil},
		{"starts a page of clients with the cursor", walk, func(s *simple) webhookcfg.Store {
			return listsClients(s, func(page admin.ClientPage, cursor string) admin.ClientPage {
				if last, found := strings.CutPrefix(cursor, "after "); found {
					page.Clients = append([]string{last}, page.Clients[:max(0, len(page.Clients)-1)]...)
					if n := len(page.Clients); page.Next != "" {
						page.Next = "after " + page.Clients[n-1]
					}
				}
				return page
			})
		}, nil},
		{"lists what a concurrent change had read", "14 concurrent changes take effect in some order", listsRaced, nil},
		{"waits two seconds for a change", "feed waits for no change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				changes, err := s.Changes(ctx, since)
				if err != nil || changes.Reset || len(changes.Clients) > 0 {
					return changes, err
				}
				select {
				case <-time.After(2 * time.Second):
				case <-ctx.Done():
				}
				return s.Changes(ctx, since)
			}}
		}, nil},
		{"knows only changes made since its handle was opened", "history agrees with the model" + several, joinsLate, nil},
	}
}

// listsRaced updates what it lists after the change, without a lock.
func listsRaced(s *simple) webhookcfg.Store {
	shared, _ := s.named.LoadOrStore("index", new(sync.Map))
	index := shared.(*sync.Map)
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			err := s.Apply(ctx, c)
			if err == nil {
				s.mu.RLock()
				cfg := s.clients[c.Client].clone()
				s.mu.RUnlock()
				pause()
				index.Store(c.Client, cfg)
			}
			return err
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			listed := newSimple()
			if cfg, ok := index.Load(client); ok {
				listed.clients[client] = cfg.(configuration)
			}
			return listed.List(ctx, client, after, limit)
		},
	}
}

// joinsLate resolves only changes that were made since its handle was opened.
func joinsLate(s *simple) webhookcfg.Store {
	s.mu.RLock()
	before := make(map[string]configuration)
	for client, cfg := range s.clients {
		before[client] = cfg.clone()
	}
	s.mu.RUnlock()
	return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
		hook, err := s.Resolve(ctx, client, entity)
		old, ok := before[client].overrides[entity]
		if !ok {
			old = before[client].base
		}
		if hook.Since.Equal(old.Since) {
			return webhookcfg.Webhook{}, err
		}
		return hook, err
	}}
}

// brokenErasures are stores that erase more than a client with nothing set.
func brokenErasures() []flaw {
	var all []flaw
	for syntax, matches := range map[string]matcher{"LIKE": like, "a glob": glob, "a regular expression": expression} {
		matching := func(s *simple, client string, do func(name string)) {
			for name := range s.clients {
				if hasWildcard(client) && matches(client, name) {
					do(name)
				}
			}
		}
		all = append(all,
			flaw{"takes the client of an erase for " + syntax, "eraser changes no webhook", func(s *simple) webhookcfg.Store {
				return broken{simple: s, erase: func(ctx context.Context, client string) error {
					s.mu.Lock()
					if s.clients[client].isEmpty() {
						matching(s, client, func(name string) { delete(s.clients, name) })
					}
					s.mu.Unlock()
					return s.Erase(ctx, client)
				}}
			}, nil},
			flaw{"erases the changes of clients that match " + syntax + " from its feed", "eraser hides no change from a feed", func(s *simple) webhookcfg.Store {
				return broken{simple: s, erase: func(ctx context.Context, client string) error {
					s.mu.Lock()
					matching(s, client, func(name string) {
						for n := range s.changed {
							if s.changed[n] == name {
								s.changed[n] = "erased"
							}
						}
					})
					s.mu.Unlock()
					return s.Erase(ctx, client)
				}}
			}, nil},
			flaw{"erases the versions of clients that match " + syntax, "eraser hides no change from a versioner", func(s *simple) webhookcfg.Store {
				return broken{simple: s, erase: func(ctx context.Context, client string) error {
					s.mu.Lock()
					matching(s, client, func(name string) { delete(s.versions, name) })
					s.mu.Unlock()
					return s.Erase(ctx, client)
				}}
			}, nil})
	}
	return append(all, flaw{"looks whether something is set, and erases then", "eraser loses no concurrent change", func(s *simple) webhookcfg.Store {
		return broken{simple: s, erase: func(ctx context.Context, client string) error {
			s.mu.RLock()
			empty := s.clients[client].isEmpty()
			s.mu.RUnlock()
			pause()
			if err := ctx.Err(); err != nil || client == "" || !empty {
				return s.Erase(ctx, client)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.clients, client)
			return nil
		}}
	}, nil})
}
