package webhookcfg_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

var (
	tooMany      = webhookcfg.Refusal{Code: "too_many_overrides", Description: "Your plan allows two entities with webhooks of their own"}
	isReserved   = webhookcfg.Refusal{Code: "reserved_entity", Description: "This entity is managed by us"}
	seed         = maphash.MakeSeed()
	maxOverrides = 2
)

// limited is a store in which each client has a limited number of entities with a URL of their
// own. It counts and changes under one lock, so no two changes of a client can both take the
// last place. That's enough for a store that only one process uses. You can do the same with
// a store.File.
type limited struct {
	*store.Memory                // embedded, so that limited has its optional methods too
	locks         [64]sync.Mutex // a client always has the same one
}

func (l *limited) Apply(ctx context.Context, c webhookcfg.Change) error {
	mu := &l.locks[maphash.String(seed, c.Client)%64]
	mu.Lock()
	defer mu.Unlock()
	if !c.Scope.IsAll() && !c.URL.IsZero() {
		others, err := l.countOthers(ctx, c.Client, c.Scope.Entity())
		if err != nil {
			return err
		}
		if others >= maxOverrides {
			return tooMany
		}
	}
	return l.Memory.Apply(ctx, c)
}

// countOthers counts the other entities of a client that have a URL of their own.
func (l *limited) countOthers(ctx context.Context, client, entity string) (others int, err error) {
	for after := ""; others < maxOverrides; {
		page, err := l.List(ctx, client, after, 100)
		if err != nil {
			return 0, err
		}
		for _, o := range page.Overrides {
			if o.Entity != entity && !o.Webhook.URL.IsZero() {
				others++
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	return others, nil
}

// A host refuses changes of entities that it manages itself, and lets its store limit how many
// overrides a client has.
func ExampleRefusal() {
	h, err := webhookcfg.NewHandler(&limited{Memory: store.NewMemory()}, oneClient{"acme", "s3cret"}, &webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff, // there is nothing to reach in an example
		Refusals:  []webhookcfg.Refusal{tooMany, isReserved},
		CheckChange: func(_ context.Context, c webhookcfg.Change) error {
			if strings.HasPrefix(c.Scope.Entity(), "system-") {
				return isReserved
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, entity := range []string{"system-1", "e1", "e2", "e3"} {
		fmt.Println(entity, h.Set(ctx, "acme", webhookcfg.Entity(entity), "https://hooks.example.com/in"))
	}
	fmt.Println(h.Unset(ctx, "acme", webhookcfg.Entity("e1")))
	fmt.Println(h.Set(ctx, "acme", webhookcfg.Entity("e3"), "https://hooks.example.com/in"))
	// Output:
	// system-1 webhookcfg: reserved_entity: This entity is managed by us
	// e1 <nil>
	// e2 <nil>
	// e3 webhookcfg: too_many_overrides: Your plan allows two entities with webhooks of their own
	// <nil>
	// <nil>
}
