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
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

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

// TestExample: the store of ExampleRun passes.
func TestExample(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) webhookcfg.Store { return new(Store) },
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

// TestCalls: the suite makes no more calls than the package documentation says, if each takes
// a millisecond. Run it with -v to read how many it makes.
func TestCalls(t *testing.T) {
	for _, test := range []struct {
		name        string
		short, only bool
		most        int64
	}{
		{"all interfaces", false, false, 75_000},
		{"all interfaces, -short", true, false, 37_500},
		{"the two methods of Store", false, true, 20_000},
		{"the two methods of Store, -short", true, true, 10_000},
	} {
		var calls atomic.Int64
		var took time.Duration
		for _, c := range storetest.Cases() {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				e := flaw{store: func(s *simple) webhookcfg.Store {
					st := waits(s, func(context.Context) error {
						calls.Add(1)
						time.Sleep(time.Millisecond)
						return nil
					})
					if test.only {
						return plain{st}
					}
					return st
				}}.env()
				if e.Short = test.short; test.only {
					e.Reopen, e.Crash, e.OpenPeer = nil, nil, nil
				}
				if err := c.Check(t.Context(), e); err != nil && !errors.Is(err, storetest.ErrAbsent) {
					t.Errorf("%s: %v", c.Name, err)
				}
				took += time.Since(begin)
			})
		}
		t.Logf("%s: %d calls, %v", test.name, calls.Load(), took)
		if calls.Load() > test.most {
			t.Errorf("%s: %d calls, more than the documented %d", test.name, calls.Load(), test.most)
		}
	}
}

// full runs the whole suite on each unusual store. Without it, half of the calls have to do.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

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
		"any that refuses control characters": func(s *simple) webhookcfg.Store {
			return refusesNames(s, unicode.IsControl)
		},
		"any that has no zero bytes in changes": func(s *simple) webhookcfg.Store {
			st := refusesNames(s, func(c rune) bool { return c == 0 })
			st.resolve, st.list = nil, nil
			return st
		},
		"any that makes one call at a time, and takes a while for it": func(s *simple) webhookcfg.Store {
			lock, _ := s.named.LoadOrStore("lock", make(chan struct{}, 1))
			return waits(s, func(ctx context.Context) error {
				select {
				case lock.(chan struct{}) <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				defer func() { <-lock.(chan struct{}) }()
				time.Sleep(time.Millisecond)
				return nil
			})
		},
		"any that takes 50 milliseconds for a call": func(s *simple) webhookcfg.Store {
			return waits(s, func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		},
		"feed that takes two seconds for a call": func(s *simple) webhookcfg.Store {
			return waits(s, func(context.Context) error { time.Sleep(2 * time.Second); return nil })
		},
		"feed that is late sometimes": func(s *simple) webhookcfg.Store {
			var calls atomic.Int64
			return broken{simple: s, changes: func(ctx context.Context, since string) (cache.Changes, error) {
				if calls.Add(1)%3 == 0 {
					time.Sleep(time.Second)
				}
				return s.Changes(ctx, since)
			}}
		},
		"clients in another order in each walk": shufflesClients,
		"eraser that does nothing": func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(ctx context.Context, client string) error {
				if client == "" {
					return webhookcfg.ErrInvalidArgument
				}
				return ctx.Err()
			}}
		},
		"eraser that erases later": func(s *simple) webhookcfg.Store {
			return broken{simple: s, erase: func(ctx context.Context, client string) error {
				if client == "" || ctx.Err() != nil {
					return s.Erase(ctx, client)
				}
				time.AfterFunc(time.Millisecond, func() { _ = s.Erase(context.Background(), client) })
				return nil
			}}
		},
		"any that rounds times up to microseconds": func(s *simple) webhookcfg.Store {
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
				if kind, _, _ := strings.Cut(name, " "); kind != "any" && !strings.HasPrefix(c.Name, kind) { // a digit: the clauses
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					e := flaw{store: store}.env()
					e.Short = !*full
					if err := c.Check(t.Context(), e); err != nil {
						t.Errorf("%s: %v", c.Name, err)
					}
				})
			}
		})
	}
}

// refusesNames refuses names with some characters.
func refusesNames(s *simple, refused func(c rune) bool) broken {
	check := func(names ...string) error {
		if strings.ContainsFunc(strings.Join(names, ""), refused) {
			return fmt.Errorf("%w: a name has a control character", webhookcfg.ErrInvalidArgument)
		}
		return nil
	}
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := check(c.Client, c.Scope.Entity()); err != nil {
				return err
			}
			return s.Apply(ctx, c)
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if err := check(client, entity); err != nil {
				return webhookcfg.Webhook{}, err
			}
			return s.Resolve(ctx, client, entity)
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			if err := check(client, after); err != nil {
				return webhookcfg.Page{}, err
			}
			return s.List(ctx, client, after, limit)
		},
	}
}

// waits waits before each call.
func waits(s *simple, wait func(ctx context.Context) error) broken {
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := wait(ctx); err != nil {
				return err
			}
			return s.Apply(ctx, c)
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if err := wait(ctx); err != nil {
				return webhookcfg.Webhook{}, err
			}
			return s.Resolve(ctx, client, entity)
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			if err := wait(ctx); err != nil {
				return webhookcfg.Page{}, err
			}
			return s.List(ctx, client, after, limit)
		},
		changes: func(ctx context.Context, since string) (cache.Changes, error) {
			if err := wait(ctx); err != nil {
				return cache.Changes{}, err
			}
			return s.Changes(ctx, since)
		},
		versions: func(ctx context.Context, clients []string) ([]string, error) {
			if err := wait(ctx); err != nil {
				return nil, err
			}
			return s.Versions(ctx, clients)
		},
		clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
			if err := wait(ctx); err != nil {
				return admin.ClientPage{}, err
			}
			return s.ListClients(ctx, cursor, limit)
		},
		erase: func(ctx context.Context, client string) error {
			if err := wait(ctx); err != nil {
				return err
			}
			return s.Erase(ctx, client)
		},
	}
}

// shufflesClients lists the clients of each walk in an order of its own.
func shufflesClients(s *simple) webhookcfg.Store {
	return broken{simple: s, clients: func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
		walk, digits, _ := strings.Cut(cursor, ":")
		if limit < 1 {
			return s.ListClients(ctx, cursor, limit)
		}
		var names []string
		if cursor == "" {
			all, err := s.ListClients(ctx, "", math.MaxInt)
			if err != nil {
				return all, err
			}
			names, walk = all.Clients, strconv.FormatUint(rand.Uint64(), 36)
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			s.named.Store(walk, names)
		} else if kept, ok := s.named.Load(walk); ok {
			names = kept.([]string)
		} else {
			return admin.ClientPage{}, webhookcfg.ErrInvalidArgument
		}
		from, _ := strconv.Atoi(digits)
		to := from + min(limit, len(names)-from)
		page := admin.ClientPage{Clients: slices.Clone(names[from:to])}
		if to < len(names) {
			page.Next = fmt.Sprint(walk, ":", to)
		}
		return page, ctx.Err()
	}}
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
		filepath.Join("..", "..", "webhookcfg", "list.go"),
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
