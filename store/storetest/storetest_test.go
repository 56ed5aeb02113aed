package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestSimpleStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:     func(testing.TB) webhookcfg.Store { return newSimple() },
		Reopen:   func(_ testing.TB, s webhookcfg.Store) webhookcfg.Store { return s.(*simple).reopened() },
		Crash:    func(_ testing.TB, s webhookcfg.Store) webhookcfg.Store { return s.(*simple).reopened() },
		OpenPeer: func(_ testing.TB, s webhookcfg.Store) webhookcfg.Store { return s },
	})
}

// TestShort: in short mode, a store passes that fails only with more overrides. go test
// -short asks for that mode.
func TestShort(t *testing.T) {
	c := caseNamed(t, "01 a change is applied whole, and nothing else")
	for _, short := range []bool{false, true} {
		err := c.Check(t.Context(), storetest.Env{Store: edits(newSimple(), dropsEldest(1000)), Short: short})
		if (err == nil) != short {
			t.Errorf("short is %t: %v", short, err)
		}
	}
	before := flag.Lookup("test.short").Value.String()
	t.Cleanup(func() { _ = flag.Set("test.short", before) })
	if err := flag.Set("test.short", "true"); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) webhookcfg.Store { return edits(newSimple(), dropsEldest(1000)) },
	})
}

// TestUnusualStores: a store passes if the documentation permits what it does, even if that's
// unusual.
func TestUnusualStores(t *testing.T) {
	for name, store := range map[string]func(s *simple) webhookcfg.Store{
		"lister of 200 overrides at most": func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				if limit > 1000 {
					limit = 200
				}
				return s.List(ctx, client, after, limit)
			}}
		},
		"lister of half a page": func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				return s.List(ctx, client, after, limit-limit/2)
			}}
		},
		"lister that looks at dropped overrides too": func(s *simple) webhookcfg.Store { return listsDropped(s) },
		"lister that does not look beyond a full page": func(s *simple) webhookcfg.Store {
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if len(page.Overrides) == limit {
					page.Next = lastOf(page)
				}
				return page, err
			}}
		},
		"lister whose every other page is empty": func(s *simple) webhookcfg.Store {
			var count atomic.Int64
			return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
				page, err := s.List(ctx, client, after, limit)
				if count.Add(1)%2 == 0 && after != "" && err == nil {
					page.Overrides, page.Next = nil, after
				}
				return page, err
			}}
		},
		"0 that makes an interrupted change and reports an error": func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				return cmp.Or(s.Apply(ctx, c), ctx.Err())
			}}
		},
		"1 that rounds times up to microseconds": func(s *simple) webhookcfg.Store {
			return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
				if !c.Time.IsZero() {
					c.Time = time.UnixMicro(c.Time.Add(time.Microsecond - 1).UnixMicro()).UTC()
				}
				return c
			})
		},
		"feed that names every client again": func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				if !changes.Reset {
					s.mu.RLock()
					defer s.mu.RUnlock()
					changes.Clients = slices.Concat(s.changed, changes.Clients)
				}
				return changes
			})
		},
		"feed that always resets": func(s *simple) webhookcfg.Store {
			return feeds(s, func(changes cache.Changes, _ string) cache.Changes {
				return cache.Changes{Reset: true, Next: changes.Next}
			})
		},
		"versioner without a version before the first change": func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				versions, err := s.Versions(ctx, clients)
				for n, version := range versions {
					versions[n] = strings.TrimPrefix(version, "0")
				}
				return versions, err
			}}
		},
		"notifier that loses every other notification": func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				in, out := s.Notify(ctx), make(chan struct{}, 1)
				go func() {
					defer close(out)
					lost := false
					for range in {
						if lost = !lost; !lost {
							select {
							case out <- struct{}{}:
							default:
							}
						}
					}
				}()
				return out
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range storetest.Cases() {
				if kind, _, _ := strings.Cut(name, " "); !strings.HasPrefix(c.Name, kind) { // a digit: the clauses
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					if err := (flaw{store: store}).check(t, c); err != nil {
						t.Errorf("%s: %v", c.Name, err)
					}
				})
			}
		})
	}
}

func BenchmarkSimpleStore(b *testing.B) {
	storetest.Benchmark(b, func(testing.TB) webhookcfg.Store { return newSimple() })
}

// optional matches the names of cases that need more than a Store.
var optional = regexp.MustCompile("^(lister|clients|eraser|feed|versioner|notifier) |reopen|crash|handle")

// TestAbsentCapabilities: a store passes without durability, without several handles, and
// without optional interfaces or with none that it supports. The cases that don't apply
// return ErrAbsent.
func TestAbsentCapabilities(t *testing.T) {
	for name, open := range map[string]func() webhookcfg.Store{
		"absent":      func() webhookcfg.Store { return struct{ webhookcfg.Store }{newSimple()} },
		"unsupported": func() webhookcfg.Store { return unsupported{newSimple()} },
	} {
		for _, c := range storetest.Cases() {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				err := c.Check(t.Context(), storetest.Env{Store: open()})
				applies := !optional.MatchString(c.Name)
				switch {
				case applies && err != nil:
					t.Error(err)
				case !applies && !errors.Is(err, storetest.ErrAbsent):
					t.Errorf("got %v, want an error that wraps ErrAbsent", err)
				}
			})
		}
	}
}

// unsupported is a store without optional interfaces, despite its methods.
type unsupported struct{ webhookcfg.Store }

func (unsupported) ListClients(context.Context, string, int) (admin.ClientPage, error) {
	return admin.ClientPage{}, errors.ErrUnsupported
}

func (unsupported) Erase(context.Context, string) error { return errors.ErrUnsupported }

func (unsupported) Changes(context.Context, string) (cache.Changes, error) {
	return cache.Changes{}, errors.ErrUnsupported
}

func (unsupported) Versions(context.Context, []string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// TestOpenedEmpty: if Open returns a store with webhooks of an earlier case, the failure says so.
func TestOpenedEmpty(t *testing.T) {
	used := newSimple()
	run := caseNamed(t, "04 set of one gives it an override").Check
	if err := run(t.Context(), storetest.Env{Store: used}); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), storetest.Env{Store: used}); err == nil || !strings.Contains(err.Error(), "Open must return an empty store") {
		t.Errorf("with the store of the first run: %v", err)
	}
}

// TestSeed: a failure of a random history contains the seed that reproduces it.
func TestSeed(t *testing.T) {
	c := caseNamed(t, "history agrees with the model")
	fail := func(seed uint64) string {
		err := c.Check(t.Context(), storetest.Env{Store: forgetsOff(newSimple()), Seed: seed})
		if err == nil {
			t.Fatal("the case does not catch a store that forgets off")
		}
		return err.Error()
	}
	first := fail(7)
	if !strings.Contains(first, "seed 7,") || first != fail(7) {
		t.Errorf("the seed is missing or does not reproduce the failure: %s", first)
	}
	drawn := regexp.MustCompile(`seed \d+`)
	if one, other := drawn.FindString(fail(0)), drawn.FindString(fail(0)); one == "" || one == other {
		t.Errorf("seed 0 drew %q and %q", one, other)
	}
}

// TestRules: the rules are quoted from the documentation, and each clause has a case, in the
// order of the clauses.
func TestRules(t *testing.T) {
	docs := documentation(t)
	clauses := make(map[string]int)
	for _, c := range storetest.Cases() {
		origin, words, _ := strings.Cut(c.Rule, ": ")
		name, number := origin, 0
		if before, after, found := strings.Cut(origin, ", clause "); found {
			name = before
			number, _ = strconv.Atoi(after)
		}
		var named int
		if n, _ := fmt.Sscanf(c.Name, "%d ", &named); n == 1 && (name != "Store" || named != number) {
			t.Errorf("%s: the rule is %s", c.Name, origin)
		}
		if number == 0 {
			if !strings.Contains(docs[name], words) {
				t.Errorf("%s: the documentation of %s does not contain: %s", c.Name, name, words)
			}
			continue
		}
		if !strings.Contains(docs[name], fmt.Sprintf(" %d. %s", number, words)) {
			t.Errorf("%s: %s differs from the documentation", c.Name, origin)
		}
		if last := clauses[name]; number != last && number != last+1 && !strings.HasPrefix(c.Name, "lister ") {
			t.Errorf("%s comes after clause %d", c.Name, last)
		}
		clauses[name] = max(clauses[name], number)
	}
	for name, text := range docs {
		if strings.Contains(text, fmt.Sprintf(" %d. ", clauses[name]+1)) {
			t.Errorf("no case for clause %d of %s", clauses[name]+1, name)
		}
	}
}

// documentation returns the doc comments of each interface and its results, without line
// breaks and without the brackets of links.
func documentation(t *testing.T) map[string]string {
	t.Helper()
	docs := make(map[string]string)
	for _, path := range []string{
		filepath.Join("..", "..", "webhookcfg", "store.go"),
		filepath.Join("..", "admin", "store.go"),
		filepath.Join("..", "cache", "feed.go"),
	} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				docs[d.Specs[0].(*ast.TypeSpec).Name.Name] = commentsIn(file, d)
			}
		}
	}
	return docs
}

func commentsIn(file *ast.File, d *ast.GenDecl) string {
	var text strings.Builder
	for _, group := range file.Comments {
		if group == d.Doc || group.Pos() > d.Pos() && group.End() < d.End() {
			text.WriteString(group.Text())
		}
	}
	return strings.NewReplacer("[", "", "]", "").Replace(" " + strings.Join(strings.Fields(text.String()), " "))
}

func caseNamed(t *testing.T, name string) storetest.Case {
	t.Helper()
	for _, c := range storetest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no case %q", name)
	return storetest.Case{}
}
