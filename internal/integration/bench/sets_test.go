package main

import (
	"context"
	"path/filepath"
	"testing"
)

func TestSetsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range 100_000 {
		entity, url := nthEntity(n), nthURL(n)
		if len(entity) != 36 || len(url) != 70 || seen[entity] || seen[url] {
			t.Fatalf("set %d is of %s to %s", n, entity, url)
		}
		seen[entity], seen[url] = true, true
	}
}

// TestPeers makes sets in every way of every store and looks them up.
func TestPeers(t *testing.T) {
	const loaded, made = 200, 20
	for _, r := range peers() {
		c, err := r.open(t.TempDir())
		if err != nil {
			t.Fatal(r.name, err)
		}
		if err := c.load(loaded); err != nil {
			t.Fatal(r.name, err)
		}
		next := loaded
		for _, way := range c.ways {
			before := way.syncs()
			for range made {
				if err := way.set(context.Background(), nthSet(next)); err != nil {
					t.Error(way.name, err)
				}
				next++
			}
			if syncs := way.syncs() - before; syncs < made || syncs > 3*made {
				t.Errorf("%s: %d syncs for %d sets, one after the other", way.name, syncs, made)
			}
		}
		for n := range next {
			set := nthSet(n)
			if url, err := c.url(set.Client, set.Scope.Entity()); err != nil || url != set.URL.Reveal() {
				t.Errorf("%s: set %d: found %q, %v", r.name, n, url, err)
			}
		}
		if err := c.close(); err != nil {
			t.Error(r.name, err)
		}
	}
}

// TestGroupCounter counts the commits of a file with a known number.
func TestGroupCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counter := &groupCounter{path: path}
	before := counter.count()
	for n := range 10 {
		if err := file.Apply(t.Context(), nthSet(n)); err != nil {
			t.Fatal(err)
		}
	}
	if groups := counter.count() - before; groups != 10 {
		t.Errorf("%d commits of one set each, counted as %d", 10, groups)
	}
}
