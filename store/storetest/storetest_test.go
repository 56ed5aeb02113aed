package storetest_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestSimpleStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:   func(testing.TB) webhookcfg.Store { return newSimple() },
		Reopen: func(_ testing.TB, s webhookcfg.Store) webhookcfg.Store { return s.(*simple).reopened() },
	})
}

func BenchmarkSimpleStore(b *testing.B) {
	storetest.Benchmark(b, func(testing.TB) webhookcfg.Store { return newSimple() })
}

// TestAbsentAbilities: a store that is neither durable nor a Lister passes, and
// the cases that it has no part in say why.
func TestAbsentAbilities(t *testing.T) {
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			plain := struct{ webhookcfg.Store }{newSimple()}
			err := c.Check(t.Context(), storetest.Env{Store: plain})
			concerns := !strings.HasPrefix(c.Name, "lister") && !strings.Contains(c.Name, "reopen")
			switch {
			case concerns && err != nil:
				t.Error(err)
			case !concerns && !errors.Is(err, storetest.ErrAbsent):
				t.Errorf("got %v, want an error that wraps ErrAbsent", err)
			}
		})
	}
}

// TestSeed: a failure of a random history names the seed that repeats it.
func TestSeed(t *testing.T) {
	c := caseNamed(t, "history agrees with the model")
	fail := func(seed uint64) string {
		err := c.Check(t.Context(), storetest.Env{Store: forgetsOff(newSimple()), Seed: seed})
		if err == nil {
			t.Fatal("not caught")
		}
		return err.Error()
	}
	first := fail(7)
	if !strings.Contains(first, "seed 7,") || first != fail(7) {
		t.Errorf("the seed is not named or does not repeat the failure: %s", first)
	}
	drawn := regexp.MustCompile(`seed \d+`)
	if one, other := drawn.FindString(fail(0)), drawn.FindString(fail(0)); one == "" || one == other {
		t.Errorf("seed 0 drew %q and %q", one, other)
	}
}

// TestRules: failures repeat the documentation word by word, and each of its
// clauses has a case, in their order.
func TestRules(t *testing.T) {
	docs := documentation(t)
	clauses := 0
	for _, c := range storetest.Cases() {
		origin, words, _ := strings.Cut(c.Rule, ": ")
		if !strings.Contains(docs, words) {
			t.Errorf("%s: the documentation does not say: %s", c.Name, words)
		}
		var named, number int
		if _, err := fmt.Sscanf(c.Name, "%d ", &named); err != nil {
			continue
		}
		if _, err := fmt.Sscanf(origin, "Store, clause %d", &number); err != nil || named != number {
			t.Errorf("%s: the rule is %s", c.Name, origin)
		}
		if named != clauses && named != clauses+1 {
			t.Errorf("%s comes after clause %d", c.Name, clauses)
		}
		clauses = named
		if !strings.Contains(docs, fmt.Sprintf(" %d. %s", named, words)) {
			t.Errorf("%s: clause %d of the documentation is another", c.Name, named)
		}
	}
	if strings.Contains(docs, fmt.Sprintf(" %d. ", clauses+1)) {
		t.Errorf("no case for clause %d", clauses+1)
	}
}

// documentation returns what is written about Store, Lister and Page, with the
// line breaks and the brackets of links taken out.
func documentation(t *testing.T) string {
	t.Helper()
	path := filepath.Join("..", "..", "webhookcfg", "store.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, group := range file.Comments {
		text.WriteString(group.Text())
	}
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(text.String()), " "))
}

func caseNamed(t *testing.T, name string) storetest.Case {
	t.Helper()
	for _, c := range storetest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no case %q", name)
	return storetest.Case{}
}
