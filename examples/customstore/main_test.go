package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestLikeMemory runs random histories on this store and on one that comes with
// the module: after every change both resolve alike.
func TestLikeMemory(t *testing.T) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ours, theirs := new(Store), store.NewMemory()
		for step := range 20 {
			c := randomChange(random)
			c.Time = time.Unix(int64(step), 0)
			if err := errors.Join(ours.Apply(ctx, c), theirs.Apply(ctx, c)); err != nil {
				t.Fatal(err)
			}
			for _, client := range []string{"a", "b"} {
				for _, entity := range []string{"e1", "e2", "e3"} {
					got, err := ours.Resolve(ctx, client, entity)
					want, err2 := theirs.Resolve(ctx, client, entity)
					if err := errors.Join(err, err2); err != nil {
						t.Fatal(err)
					}
					if got.Source != want.Source || !got.URL.Equal(want.URL) || !got.Since.Equal(want.Since) {
						t.Fatalf("after %+v: %s/%s is %+v, want %+v", c, client, entity, got, want)
					}
				}
			}
		}
	}
}

func randomChange(r *rand.Rand) webhookcfg.Change {
	client := string("ab"[r.IntN(2)])
	scope := webhookcfg.All()
	if r.IntN(3) > 0 {
		scope = webhookcfg.Entity(fmt.Sprint("e", 1+r.IntN(2)))
	}
	if r.IntN(3) == 0 {
		return webhookcfg.Unset(client, scope)
	}
	return webhookcfg.Set(client, scope, egress.NewURL(fmt.Sprintf("https://h.example.com/%d", r.IntN(3))))
}

func TestRefusals(t *testing.T) {
	st := new(Store)
	url := egress.NewURL("https://h.example.com/")
	if err := st.Apply(t.Context(), webhookcfg.Set("a", webhookcfg.Entity(""), url)); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("a change without a scope: %v", err)
	}
	if _, err := st.Resolve(t.Context(), "a", ""); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("an empty entity: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := st.Apply(gone, webhookcfg.Set("a", webhookcfg.All(), url)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if hook, err := st.Resolve(t.Context(), "a", "e1"); err != nil || hook.Source != webhookcfg.SourceNone {
		t.Errorf("a refused change left %v, %v", hook, err)
	}
}
