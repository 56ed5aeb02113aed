package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

func brokenLists() []flaw {
	return []flaw{
		{"lists in another order", "lister lists the overrides in byte order", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
				slices.SortStableFunc(page.Overrides, func(a, b webhookcfg.Override) int {
					return cmp.Compare(strings.ToLower(a.Entity), strings.ToLower(b.Entity))
				})
				return page
			})
		}, nil},
		{"does not list overrides that are off", "lister lists the overrides in byte order", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
				page.Overrides = slices.DeleteFunc(page.Overrides, func(o webhookcfg.Override) bool {
					return o.Webhook.Source == webhookcfg.SourceOff
				})
				return page
			})
		}, nil},
		{"lists times in seconds", "lister lists the overrides in byte order", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
				for i := range page.Overrides {
					hook := &page.Overrides[i].Webhook
					hook.Since = hook.Since.Truncate(time.Second)
				}
				return page
			})
		}, nil},
		{"adds one to the limit", "lister lists the overrides in byte order", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				if limit+1 < limit {
					return webhookcfg.Page{}, errors.New("negative limit")
				}
				return s.List(ctx, client, after, limit)
			}}
		}, nil},
		{"ignores the limit", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				return s.List(ctx, client, after, max(limit, 2*limit))
			}}
		}, nil},
		{"always returns Next", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, after string) webhookcfg.Page {
				page.Next = cmp.Or(page.Next, lastOf(page), after, "x")
				return page
			})
		}, nil},
		{"returns short pages whose Next skips an override", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if n := len(page.Overrides); n > 2 {
					page.Overrides, page.Next = page.Overrides[:n-2], page.Overrides[n-2].Entity
				}
				return page, err
			}}
		}, nil},
		{"returns short pages whose Next repeats an override", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if n := len(page.Overrides); n > 2 {
					page.Overrides, page.Next = page.Overrides[:n-1], page.Overrides[n-3].Entity
				}
				return page, err
			}}
		}, nil},
		{"returns an empty page without Next where a search ends", "lister walks page by page", func(s *simple) webhookcfg.Store {
			st := listsDropped(s)
			list := st.list
			st.list = func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := list(ctx, client, after, limit)
				if len(page.Overrides) == 0 {
					page.Next = ""
				}
				return page, err
			}
			return st
		}, nil},
		{"lists 100 overrides at most, without Next", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, min(limit, 100))
				if limit > 100 {
					page.Next = ""
				}
				return page, err
			}}
		}, nil},
		{"keeps the rest of a listing without its client", "lister walks page by page", sharesCursors, nil},
		{"never returns Next", "lister walks page by page", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
				page.Next = ""
				return page
			})
		}, nil},
		{"starts only after names that have an override", "lister starts after any name", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				s.mu.RLock()
				_, found := s.clients[client].overrides[after]
				s.mu.RUnlock()
				if !found {
					after = ""
				}
				return s.List(ctx, client, after, limit)
			}}
		}, nil},
		{"starts with the first after a name of more than 128 bytes", "lister starts after any name", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				if len(after) > 128 {
					after = ""
				}
				return s.List(ctx, client, after, limit)
			}}
		}, nil},
		{"starts with the name", "lister starts after any name", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				if after != "" {
					after = after[:len(after)-1] + string(rune(after[len(after)-1]-1))
				}
				return s.List(ctx, client, after, limit)
			}}
		}, nil},
		{"returns the base only on the first page", "lister returns the base with every page", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, after string) webhookcfg.Page {
				if after != "" {
					page.Base = webhookcfg.Webhook{}
				}
				return page
			})
		}, nil},
		{"returns no base without overrides", "lister returns the base with every page", func(s *simple) webhookcfg.Store {
			return lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
				if len(page.Overrides) == 0 {
					page.Base = webhookcfg.Webhook{}
				}
				return page
			})
		}, nil},
		{"returns an error for lists of unknown clients", "lister returns an empty page for an unknown client", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if err == nil && page.Base.Source == webhookcfg.SourceNone && len(page.Overrides) == 0 {
					err = errors.New("not found")
				}
				return page, err
			}}
		}, nil},
		{"accepts limit 0", "lister refuses invalid arguments", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				if limit == 0 {
					limit = 100
				}
				return s.List(ctx, client, after, limit)
			}}
		}, nil},
		{"returns the same page to all callers", "lister shares no memory with its callers", sharesPages, nil},
		{"reads a page in two steps", "lister returns one state", func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				first, err := s.List(ctx, client, after, limit)
				if err != nil {
					return first, err
				}
				pause()
				page, err := s.List(ctx, client, after, limit)
				page.Base = first.Base
				return page, err
			}}
		}, nil},
		{"lists the override before the last set", "history agrees with the model", listsLate, nil},
	}
}

// lastOf returns the name of the last override of a page, if any.
func lastOf(page webhookcfg.Page) string {
	if n := len(page.Overrides); n > 0 {
		return page.Overrides[n-1].Entity
	}
	return ""
}

// listsDropped looks at as many names per page as the limit, including entities that had an
// override once. So its pages can be short or empty.
func listsDropped(s *simple) broken {
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			s.named.Store([2]string{c.Client, c.Scope.Entity()}, true)
			return s.Apply(ctx, c)
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			page, err := s.List(ctx, client, after, limit)
			var names []string
			s.named.Range(func(key, _ any) bool {
				if name := key.([2]string); name[0] == client && name[1] > after {
					names = append(names, name[1])
				}
				return true
			})
			slices.Sort(names)
			if err != nil || limit >= len(names) {
				return page, err
			}
			page.Next = names[limit-1]
			page.Overrides = slices.DeleteFunc(page.Overrides, func(o webhookcfg.Override) bool { return o.Entity > page.Next })
			return page, nil
		},
	}
}

// sharesPages reuses its pages until the next change.
func sharesPages(s *simple) webhookcfg.Store {
	var pages sync.Map
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			defer pages.Clear()
			return s.Apply(ctx, c)
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			page, err := s.List(ctx, client, after, limit)
			if err != nil {
				return page, err
			}
			shared, _ := pages.LoadOrStore(fmt.Sprint(client, after, limit), page)
			return shared.(webhookcfg.Page), nil
		},
	}
}

// sharesCursors keeps the rest of a listing under the name of its last entity.
func sharesCursors(s *simple) webhookcfg.Store {
	var rests sync.Map
	return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
		page, err := s.List(ctx, client, after, limit)
		if rest, ok := rests.LoadAndDelete(after); ok && err == nil {
			page = rest.(webhookcfg.Page)
		}
		if page.Next != "" {
			next, err := s.List(ctx, client, page.Next, limit)
			if err != nil {
				return page, err
			}
			rests.Store(page.Next, next)
		}
		return page, err
	}}
}

// listsLate does not list a set of an entity that was off.
func listsLate(s *simple) webhookcfg.Store {
	var again sync.Map
	st := lists(s, func(page webhookcfg.Page, _ string) webhookcfg.Page {
		for n, o := range page.Overrides {
			if before, ok := again.Load(o.Entity); ok {
				page.Overrides[n].Webhook = before.(webhookcfg.Webhook)
			}
		}
		return page
	})
	st.apply = func(ctx context.Context, c webhookcfg.Change) error {
		if hook, err := s.Resolve(ctx, c.Client, c.Scope.Entity()); err == nil && hook.Source == webhookcfg.SourceOff {
			again.Store(c.Scope.Entity(), hook)
		}
		return s.Apply(ctx, c)
	}
	return st
}
