package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// TestReplay: a store finds the sets of the bare client, and the other way round, unless a
// statement is missing.
func TestReplay(t *testing.T) {
	db := startSQLite(t)
	st := storeAccess{db.open(t, barePrefix)}
	bare := db.bare(t, barePrefix).(*replay)
	if err := pass(t.Context(), bare, st, 1); err != nil {
		t.Error(err)
	}
	if err := pass(t.Context(), st, bare, 2); err != nil {
		t.Error(err)
	}
	for left := 1; left < len(bare.sets)-1; left++ {
		broken := &replay{db: bare.db, sets: slices.Delete(slices.Clone(bare.sets), left, left+1)}
		if err := pass(t.Context(), broken, st, 2+left); err == nil {
			t.Errorf("no read misses %s", bare.sets[left].text)
		}
	}
}

// pass makes a set on one side and finds it on the other.
func pass(ctx context.Context, from, to access, n int) error {
	c := nthSet(n)
	if err := from.set(ctx, c); err != nil {
		return err
	}
	url, err := to.url(ctx, c.Client, c.Scope.Entity())
	if err == nil && url != c.URL.Reveal() {
		err = fmt.Errorf("set %d: found %q", n, url)
	}
	return err
}

// TestComparisons measures very little.
func TestComparisons(t *testing.T) {
	s := settings{rounds: 1, turn: time.Millisecond, watch: 20 * time.Millisecond, entries: 100, overrides: 100}
	all := comparisons()
	s.measureEngine(t, dbEngine{"SQLite", startSQLite}, all)
	for _, table := range all {
		for _, row := range table.rows {
			if len(row) != len(table.header) {
				t.Errorf("%s: %d cells below %d headings", table.name, len(row), len(table.header))
			}
		}
		if len(table.rows) == 0 && table.name != "transaction" {
			t.Errorf("%s is empty", table.name)
		}
	}
}

// TestLostSets: check fails if a side loses a set.
func TestLostSets(t *testing.T) {
	db := startSQLite(t)
	s := settings{entries: 100}
	both, err := s.callers(t, db)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range both {
		if err := l.access.set(t.Context(), nthSet(int(l.next.Add(1)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.check(t, db, both); err != nil {
		t.Error(err)
	}
	both[1].next.Add(1)
	if s.check(t, db, both) == nil {
		t.Error("no error for a lost set")
	}
}

// TestReadsOfCopy: polls cause no read of the store.
func TestReadsOfCopy(t *testing.T) {
	s := settings{watch: 20 * time.Millisecond}
	if reads, err := s.readsOfCopy(t.Context(), startSQLite(t).open(t, oursPrefix)); err != nil || reads != copied {
		t.Errorf("%d reads of %d entities: %v", reads, copied, err)
	}
}

// slowStore takes a second for each resolve.
type slowStore struct{ webhookcfg.Store }

func (slowStore) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	time.Sleep(time.Second)
	return webhookcfg.Webhook{URL: quiet.URL}, nil
}

// TestResolveQuiet: resolves do not wait for each other.
func TestResolveQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, err := resolveQuiet(t.Context(), slowStore{}, 100*time.Millisecond)
		if err != nil || len(all.waits) != 100 || all.quantile(0) != time.Second || all.quantile(1) != time.Second {
			t.Errorf("%d waits from %v to %v: %v", len(all.waits), all.quantile(0), all.quantile(1), err)
		}
	})
}

func TestLags(t *testing.T) {
	at := func(milliseconds ...int) (all []time.Time) {
		for _, ms := range milliseconds {
			all = append(all, since.Add(time.Duration(ms)*time.Millisecond))
		}
		return all
	}
	for _, tt := range []struct {
		name                string
		acknowledged, asked []time.Time
		want                []float64
	}{
		{"seen at once", at(10, 20), at(9, 19, 30), []float64{0, 0}},
		{"seen late", at(10, 20), at(15, 50, 60), []float64{5, 30}},
		{"skipped", at(10, 20), slices.Concat(at(45), make([]time.Time, 1), at(60)), []float64{35, 25}},
		{"an older one again", at(10, 20), at(90, 19, 60), []float64{80, 70}},
	} {
		w := watch{tt.acknowledged, tt.asked}
		if got := w.lags(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
