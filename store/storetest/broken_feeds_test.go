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
		{"starts without a reset", "feed starts with a reset", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, since string) cache.Changes {
				changes.Reset = changes.Reset && since != ""
				return changes
			})
		}, nil},
		{"returns no cursor before the first change", "feed starts with a reset", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				if strings.HasSuffix(changes.Next, ".0") {
					changes.Next = ""
				}
				return changes
			})
		}, nil},
		{"does not report unset of all", "feed reports every change", func(s *simple) webhookcfg.Store {
			return unnamed(s, func(c webhookcfg.Change) bool { return c.Scope.IsAll() && c.URL.IsZero() })
		}, nil},
		{"does not report a set of the same URL", "feed reports every change", func(s *simple) webhookcfg.Store {
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
		{"reports the last 64 without a reset", "feed reports every change", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				changes.Clients = changes.Clients[max(0, len(changes.Clients)-64):]
				return changes
			})
		}, nil},
		{"reports only changes through this handle", "feed reports changes through another handle", ownFeed, nil},
		{"numbers changes before it makes them", "feed is complete concurrently with writers", numbersBefore, nil},
		{"reports changes before it makes them", "feed reports no change too early", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
					return err
				}
				s.edit(c.Client, func(cfg configuration) configuration { return cfg })
				yield()
				return applyUnnamed(ctx, s, c)
			}}
		}, nil},
		{"accepts any number as a cursor", "feed resets after an unknown cursor", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				if _, err := strconv.Atoi(since); err == nil {
					return cache.Changes{Next: since}, nil
				}
				return s.Changes(ctx, since)
			}}
		}, nil},
		{"returns an error for an unknown cursor", "feed resets after an unknown cursor", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				changes, err := s.Changes(ctx, since)
				if err == nil && changes.Reset && since != "" {
					err = fmt.Errorf("unknown cursor")
				}
				return changes, err
			}}
		}, nil},
		{"restarts its cursors when reopened", "feed resets or continues when reopened", func(s *simple) webhookcfg.Store {
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
		{"reports each change to only one caller", "feed accepts a cursor again", reportsOnce, nil},
		{"ignores the context of Changes", "feed refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, changes: func(_ context.Context, since string) (cache.Changes, error) {
				return s.Changes(context.Background(), since)
			}}
		}, nil},
	}
}

// feeds is a store whose feed returns other changes.
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

// unnamed is a store whose feed omits some changes.
func unnamed(s *simple, out func(c webhookcfg.Change) bool) broken {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if c.Validate() == nil && out(c) {
			return applyUnnamed(ctx, s, c)
		}
		return s.Apply(ctx, c)
	}}
}

// applyUnnamed makes a change that the feed does not report.
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

// changeList is a separate feed: note adds an entry, since reads them.
type changeList struct {
	mu    sync.Mutex
	names []string
}

func (j *changeList) note(client string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.names = append(j.names, client)
}

func (j *changeList) since(since string) cache.Changes {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, err := strconv.Atoi(since)
	if err != nil {
		return cache.Changes{Reset: true, Next: strconv.Itoa(len(j.names))}
	}
	return cache.Changes{Clients: slices.Clone(j.names[from:]), Next: strconv.Itoa(len(j.names))}
}

func ownFeed(s *simple) webhookcfg.Store {
	var own changeList
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			defer own.note(c.Client)
			return s.Apply(ctx, c)
		},
		changes: func(_ context.Context, since string) (cache.Changes, error) { return own.since(since), nil },
	}
}

// numbersBefore numbers each change before it is made, which takes longer for some, and
// skips those that are not made yet when a later one is reported.
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

// reportsOnce has one list of changes, which every call empties.
func reportsOnce(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	reported := s.opening + ".0"
	return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
		mu.Lock()
		defer mu.Unlock()
		if since != "" {
			since = reported
		}
		changes, err := s.Changes(ctx, since)
		reported = changes.Next
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
		{"returns no version of unknown clients", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.DeleteFunc(slices.Clone(clients), func(client string) bool {
					return s.clients[client].base.Source == 0 && s.clients[client].overrides == nil
				}))
			}}
		}, nil},
		{"derives the version from the configuration", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string {
				cfg := s.clients[client]
				return fmt.Sprint(cfg.base.URL.Reveal(), len(cfg.overrides), cfg.overrides["e1"].URL.Reveal())
			})
		}, nil},
		{"counts only changes of all", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
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
		{"counts only changes through this handle", "versioner returns a new version after a change through another handle", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error { return cmp.Or(apply(), count()) })
		}, nil},
		{"restarts its versions when reopened", "versioner returns a new version when reopened and changed", asIs, func(s *simple) *simple {
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
		{"returns another version each time", "versioner keeps versions while nothing changes", func(s *simple) webhookcfg.Store {
			var calls atomic.Int64
			return versioned(s, func(string) string { return strconv.FormatInt(calls.Add(1), 10) })
		}, nil},
		{"ignores the context of Versions", "versioner refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(_ context.Context, clients []string) ([]string, error) {
				return s.Versions(context.Background(), clients)
			}}
		}, nil},
	}
}

// versioned is a store that returns other versions.
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

// countsVersions counts changes outside of the store, in the order that both defines.
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

func brokenNotifiers() []flaw {
	return []flaw{
		{"never notifies", "notifier notifies after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				never := make(chan struct{})
				context.AfterFunc(ctx, func() { close(never) })
				return never
			}}
		}, nil},
		{"closes the channel at once", "notifier notifies after a change", func(s *simple) webhookcfg.Store {
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
		{"waits for its notifications to be received", "notifier blocks no change", waitsForReceiver, nil},
	}
}

func waitsForReceiver(s *simple) webhookcfg.Store {
	notifications := make(chan struct{})
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			select {
			case notifications <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		notify: func(context.Context) <-chan struct{} { return notifications },
	}
}
