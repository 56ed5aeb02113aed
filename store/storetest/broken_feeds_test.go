package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

func brokenFeeds() []flaw {
	return []flaw{
		{"begins without a reset", "feed starts with a reset", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, since string) cache.Changes {
				changes.Reset = changes.Reset && since != ""
				return changes
			})
		}, nil},
		{"has no cursor as long as nothing changed", "feed starts with a reset", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				if strings.HasSuffix(changes.Next, ".0") {
					changes.Next = ""
				}
				return changes
			})
		}, nil},
		{"names no unset of all", "feed reports every change", func(s *simple) webhookcfg.Store {
			return unnamed(s, func(c webhookcfg.Change) bool { return c.Scope.IsAll() && c.URL.IsZero() })
		}, nil},
		{"names no change to what is set already", "feed reports every change", func(s *simple) webhookcfg.Store {
			return unnamed(s, func(c webhookcfg.Change) bool {
				return !c.Scope.IsAll() && c.URL.Equal(s.clients[c.Client].overrides[c.Scope.Entity()].URL)
			})
		}, nil},
		{"names clients in lower case", "feed reports every change", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				for n, client := range changes.Clients {
					changes.Clients[n] = strings.ToLower(client)
				}
				return changes
			})
		}, nil},
		{"names the last 64 and gives no reset", "feed reports every change", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				changes.Clients = changes.Clients[max(0, len(changes.Clients)-64):]
				return changes
			})
		}, nil},
		{"names what is changed through this handle", "feed reports changes through another handle", ownFeed, nil},
		{"numbers changes before it makes them", "feed is complete concurrently with writers", numbersBefore, nil},
		{"names changes before it makes them", "feed reports no change too early", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
					return err
				}
				s.edit(c.Client, func(cfg configuration) configuration { return cfg })
				yield()
				return applyUnnamed(ctx, s, c)
			}}
		}, nil},
		{"takes any number for a cursor", "feed resets after an unknown cursor", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				if _, err := strconv.Atoi(since); err == nil {
					return cache.Changes{Next: since}, nil
				}
				return s.Changes(ctx, since)
			}}
		}, nil},
		{"has an error for an unknown cursor", "feed resets after an unknown cursor", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				changes, err := s.Changes(ctx, since)
				if err == nil && changes.Reset && since != "" {
					err = fmt.Errorf("unknown cursor")
				}
				return changes, err
			}}
		}, nil},
		{"begins to count anew when reopened", "feed resets or continues when reopened", func(s *simple) webhookcfg.Store {
			return feedFrom(s, func(since string) string {
				if digits, found := strings.CutPrefix(since, "c"); found {
					return s.opening + "." + digits
				}
				return since
			}, func(next string) string {
				_, digits, _ := strings.Cut(next, ".")
				return "c" + digits
			})
		}, nil},
		{"names each change to one caller alone", "feed accepts a cursor again", tellsOnce, nil},
		{"gives changes to those who are gone", "feed refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(_ context.Context, since string) (cache.Changes, error) {
				return s.Changes(context.Background(), since)
			}}
		}, nil},
	}
}

// feeds is a store with other answers of its feed.
func feeds(s *simple, other func(changes cache.Changes, since string) cache.Changes) broken {
	return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
		changes, err := s.Changes(ctx, since)
		return other(changes, since), err
	}}
}

// feedFrom is a store with other cursors.
func feedFrom(s *simple, in, out func(cursor string) string) broken {
	return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
		changes, err := s.Changes(ctx, in(since))
		changes.Next = out(changes.Next)
		return changes, err
	}}
}

// unnamed is a store whose feed leaves out some changes.
func unnamed(s *simple, out func(c webhookcfg.Change) bool) broken {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if c.Validate() == nil && out(c) {
			return applyUnnamed(ctx, s, c)
		}
		return s.Apply(ctx, c)
	}}
}

// applyUnnamed makes a change that the feed does not name.
func applyUnnamed(ctx context.Context, s *simple, c webhookcfg.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.Client] = s.clients[c.Client].clone().after(c)
	s.versions[c.Client]++
	return nil
}

// journaled is a store with a feed of its own: note makes entries, since reads them.
type journaled struct {
	mu    sync.Mutex
	names []string
}

func (j *journaled) note(client string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.names = append(j.names, client)
}

func (j *journaled) since(since string) cache.Changes {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, err := strconv.Atoi(since)
	if err != nil {
		return cache.Changes{Reset: true, Next: strconv.Itoa(len(j.names))}
	}
	return cache.Changes{Clients: slices.Clone(j.names[from:]), Next: strconv.Itoa(len(j.names))}
}

func ownFeed(s *simple) webhookcfg.Store {
	var own journaled
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			defer own.note(c.Client)
			return s.Apply(ctx, c)
		},
		changes: func(_ context.Context, since string) (cache.Changes, error) { return own.since(since), nil },
	}
}

// numbersBefore takes a number for each change before it is made, which takes longer for
// some, and forgets those that are not made yet when somebody asks for later ones.
func numbersBefore(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	var last int
	made := make(map[int]string)
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			mu.Lock()
			last++
			number := last
			mu.Unlock()
			for range 3 * (number % 3) {
				yield()
			}
			err := s.Apply(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			made[number] = c.Client
			return err
		},
		changes: func(_ context.Context, since string) (cache.Changes, error) {
			mu.Lock()
			defer mu.Unlock()
			from, err := strconv.Atoi(since)
			changes := cache.Changes{Reset: err != nil}
			next := from
			for number, client := range made {
				if number > from && !changes.Reset {
					changes.Clients = append(changes.Clients, client)
				}
				next = max(next, number)
			}
			changes.Next = strconv.Itoa(next)
			return changes, nil
		},
	}
}

// tellsOnce has one list of changes, which every answer empties.
func tellsOnce(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	told := s.opening + ".0"
	return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
		mu.Lock()
		defer mu.Unlock()
		if since != "" {
			since = told
		}
		changes, err := s.Changes(ctx, since)
		told = changes.Next
		return changes, err
	}}
}

func brokenVersions() []flaw {
	return []flaw{
		{"sorts the versions by client", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.Sorted(slices.Values(clients)))
			}}
		}, nil},
		{"has no version of unknown clients", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.DeleteFunc(slices.Clone(clients), func(client string) bool {
					return s.clients[client].base.Source == 0 && s.clients[client].overrides == nil
				}))
			}}
		}, nil},
		{"has a version for each configuration", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string {
				cfg := s.clients[client]
				return fmt.Sprint(cfg.base.URL.Reveal(), len(cfg.overrides), cfg.overrides["e1"].URL.Reveal())
			})
		}, nil},
		{"counts the changes of all", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
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
		{"counts the changes through this handle", "versioner returns a new version after a change through another handle", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error { return cmp.Or(apply(), count()) })
		}, nil},
		{"begins to count versions anew when reopened", "versioner returns a new version when reopened and changed", asIs, func(s *simple) *simple {
			next := s.reopened()
			clear(next.versions)
			return next
		}},
		{"counts before it makes the change", "versioner is correct concurrently with a writer", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error {
				_ = count()
				yield()
				return apply()
			})
		}, nil},
		{"counts after it made the change", "versioner is correct concurrently with a writer", func(s *simple) webhookcfg.Store {
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

func brokenWakers() []flaw {
	return []flaw{
		{"gives no hint", "notifier notifies after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				never := make(chan struct{})
				context.AfterFunc(ctx, func() { close(never) })
				return never
			}}
		}, nil},
		{"closes the channel after the first hint", "notifier notifies after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(context.Context) <-chan struct{} {
				over := make(chan struct{})
				close(over)
				return over
			}}
		}, nil},
		{"leaves the channel open", "notifier closes the channel with the context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				return s.Notify(context.WithoutCancel(ctx))
			}}
		}, nil},
		{"waits for its hints to be taken", "notifier blocks no change", waitsForTaker, nil},
	}
}

func waitsForTaker(s *simple) webhookcfg.Store {
	hints := make(chan struct{})
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			select {
			case hints <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		notify: func(context.Context) <-chan struct{} { return hints },
	}
}
