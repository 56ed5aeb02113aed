package admin_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestDeleteClient: without Erase, a deleted client leaves its webhooks to the next client of
// that name. With Erase, the next one inherits nothing, even through an older copy.
func TestDeleteClient(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) webhookcfg.Store{
		"memory": func(*testing.T) webhookcfg.Store { return store.NewMemory() },
		"file": func(t *testing.T) webhookcfg.Store {
			f, err := store.OpenFile(filepath.Join(t.TempDir(), "webhooks.jsonl"), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		},
	} {
		for _, isErased := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				st := open(t)
				copied, err := cache.New(st, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer copied.Close()
				hooktest.Apply(t, st, hooktest.SetAll("acme", 1), hooktest.Unset("acme", "off", 2), hooktest.SetAll("globex", 3))
				old := hooktest.Describe(resolve(t, copied.Store(), "acme", "e1"))
				if isErased {
					if err := admin.Erase(t.Context(), st, "acme"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Hour) // the copy is away
				hooktest.Apply(t, st, hooktest.Set("acme", "e2", 4))
				time.Sleep(time.Minute)
				want := old
				if isErased {
					want = ""
				}
				for _, reader := range []webhookcfg.Store{st, copied.Store()} {
					if got := hooktest.Describe(resolve(t, reader, "acme", "e1")); got != want {
						t.Errorf("%s, erased %t: the next client has %s, want %s", name, isErased, got, want)
					}
				}
				if got := resolve(t, st, "globex", "e1"); got.Source != webhookcfg.SourceBase {
					t.Errorf("%s: the neighbour has %s", name, hooktest.Describe(got))
				}
			})
		}
	}
}

// erasing is a Memory with an Eraser.
type erasing struct {
	*store.Memory
	erase func(client string) error
}

func (e erasing) Erase(_ context.Context, client string) error { return e.erase(client) }

// TestErase: Erase unsets all, then calls the Eraser if there's one, and returns the errors
// of both.
func TestErase(t *testing.T) {
	memory := store.NewMemory()
	var had webhookcfg.Webhook
	eraser := func(err error) erasing {
		return erasing{memory, func(client string) error {
			had = resolve(t, memory, client, "e1")
			return err
		}}
	}
	for name, test := range map[string]struct {
		st   webhookcfg.Store
		want error
	}{
		"no eraser":    {memory, nil},
		"eraser":       {eraser(nil), nil},
		"unsupported":  {eraser(errors.ErrUnsupported), nil},
		"broken":       {eraser(errBroken), errBroken},
		"cannot unset": {wrapped{Memory: memory, apply: func(webhookcfg.Change) error { return errBroken }}, errBroken},
	} {
		hooktest.Apply(t, memory, hooktest.SetAll("acme", 1), hooktest.Set("acme", "e1", 2))
		if err := admin.Erase(t.Context(), test.st, "acme"); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if had.Source != webhookcfg.SourceNone {
			t.Errorf("%s: erased before all was unset", name)
		}
		if got := resolve(t, memory, "acme", "e1"); (got.Source != webhookcfg.SourceNone) != (name == "cannot unset") {
			t.Errorf("%s: %s is left", name, hooktest.Describe(got))
		}
	}
	if err := admin.Erase(t.Context(), memory, ""); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("without a client: %v", err)
	}
}
