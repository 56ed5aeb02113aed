package storetest_test

import (
	"errors"
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

// TestRules: the rules that failures repeat are the words of the documentation,
// and no clause is without a case.
func TestRules(t *testing.T) {
	docs := documentation(t)
	next := 1
	clause := regexp.MustCompile(`^clause (\d+) of Store: `)
	for _, c := range storetest.Cases() {
		_, words, found := strings.Cut(c.Rule, ": ")
		if !found || !strings.Contains(docs, words) {
			t.Errorf("%s: the rule is not in the documentation: %s", c.Name, c.Rule)
		}
		number := clause.FindStringSubmatch(c.Rule)
		if number == nil || c.Name[0] > '9' {
			continue
		}
		if !strings.Contains(docs, " "+number[1]+". "+words) {
			t.Errorf("%s: the documentation has other words at %s", c.Name, number[1])
		}
		if want := twoDigits(next); !strings.HasPrefix(c.Name, want) {
			next++
		}
		if want := twoDigits(next); !strings.HasPrefix(c.Name, want) || twoDigits(next) != twoDigits(atoi(number[1])) {
			t.Errorf("%s: out of order, want clause %d", c.Name, next)
		}
	}
	if strings.Contains(docs, " "+twoDigits(next+1)+". ") || !strings.Contains(docs, " "+twoDigits(next)+". ") {
		t.Errorf("the last clause with a case is %d", next)
	}
}
