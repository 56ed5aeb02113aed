package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

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
		{"reports the last 1,000 without a reset", "feed reports every change", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				changes.Clients = changes.Clients[max(0, len(changes.Clients)-1000):]
				return changes
			})
		}, nil},
		{"reports 100 clients at most and skips the others", "feed reports every change", func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				slices.Sort(changes.Clients)
				changes.Clients = slices.Compact(changes.Clients)
				changes.Clients = changes.Clients[:min(len(changes.Clients), 100)]
				return changes
			})
		}, nil},
		{"numbers changes before it makes them", "feed is complete concurrently with writers", numbersBefore, nil},
		{"reports changes before it makes them", "feed reports no change too early", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
					return err
				}
				s.edit(c.Client, func(cfg configuration) configuration { return cfg })
				pause()
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
		{"restarts its cursors when reopened", "feed resets or continues when reopened", restartsCursors, nil},
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

// restartsCursors is a store whose cursors are the numbers of changes since it was opened.
func restartsCursors(s *simple) webhookcfg.Store {
	return feedFrom(s, func(since string) string {
		if digits, found := strings.CutPrefix(since, "c"); found {
			return s.opening + "." + digits
		}
		return since
	}, func(next string) string {
		_, digits, _ := strings.Cut(next, ".")
		return "c" + digits
	})
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
			for range number % 3 {
				pause()
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
