package admin_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// seal wraps the store of an engine. It still follows the rules that depend on the engine: it
// returns URLs of any length as they were set, in any place, in lists and in random histories.
// What the engine keeps doesn't show a URL, not even the host.
func seal(t *testing.T, name string, fresh func(t *testing.T, name string) place) {
	key, err := sealed.NewKey("k", bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.SharedKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	wrap := func(t *testing.T, inner webhookcfg.Store) webhookcfg.Store {
		t.Helper()
		st, err := sealed.New(inner, keys, nil)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}

	p := fresh(t, name)
	p.use(t, func(inner webhookcfg.Store) {
		st, model := wrap(t, inner), modelled(t, content()...)
		mustCopy(t, "to sealed "+name, st, model)
		requireEqual(t, "to sealed "+name, st, model)
	})
	all := keeps(t, p)
	if p.engine == "sqlite" {
		all += filesOf(t, p)
	}
	if !strings.Contains(all, "sealed.1.k.") {
		t.Error("no envelope found")
	}
	if strings.Contains(all, "example.com") || strings.Contains(all, "xxxxxxxx") {
		t.Error("a URL is readable")
	}

	for _, c := range storetest.Cases() {
		switch kind, _, _ := strings.Cut(c.Name, " "); kind {
		case "11", "lister", "history":
		default:
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			fresh(t, name).use(t, func(inner webhookcfg.Store) {
				err := c.Check(t.Context(), storetest.Env{Store: wrap(t, inner), Short: true})
				if err != nil && !errors.Is(err, storetest.ErrAbsent) {
					t.Error(err)
				}
			})
		})
	}
}

// filesOf returns the contents of a database's file and of its log.
func filesOf(t *testing.T, p place) (all string) {
	t.Helper()
	path, _, _ := strings.Cut(strings.TrimPrefix(p.address, "file:"), "?")
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(content)
	}
	return all
}
