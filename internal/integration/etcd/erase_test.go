package etcd_test

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// erases erases a client while a reader is away. Nothing of the client must be left, a new
// client with the same name inherits nothing, and the reader learns of it.
func erases(t *testing.T, c *etcdcluster.Cluster) {
	client, o := c.Client(t), newOptions()
	st := openOn(t, client, o)
	never := readFeed(t, st)
	hooktest.Apply(t, st, hooktest.SetAll("gone", 1), hooktest.Set("gone/2", "e1", 1), hooktest.SetAll("gone0", 1))
	for n := range 600 { // more than one request
		hooktest.Apply(t, st, hooktest.Set("gone", fmt.Sprint("e", n), n))
	}
	erase := func(name string, left int64) {
		t.Helper()
		if err := st.Erase(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if n := keysOf(t, client, o.Prefix); n != left {
			t.Errorf("after an erase of %s, %d keys are left, want %d", name, n, left)
		}
	}
	erase("gone", 603)
	erase("gone/2", 603)
	away := readFeed(t, st)
	hooktest.Apply(t, st, hooktest.UnsetAll("gone", 2), hooktest.Unset("gone", "off", 3), hooktest.Unset("gone/2", "e1", 2))
	erase("gone", 2)
	erase("gone/2", 1)
	erase("unknown", 1)
	for name, reader := range map[string]*feedReader{"never seen it": never, "was away": away} {
		if reader.catchUp(t); !reader.named["gone"] && reader.resets == 1 {
			t.Errorf("a reader that %s has no change", name)
		}
	}
	clear(away.named)
	fresh := openOn(t, client, o)
	hooktest.Apply(t, fresh, hooktest.Set("gone", "e7", 9))
	for entity, url := range map[string]string{"e7": hooktest.URL(9).Reveal(), "e8": "", "off": ""} {
		expect(t, st, "gone", entity, url)
	}
	if away.catchUp(t); !away.named["gone"] {
		t.Error("the client of the same name is not reported")
	}
	erase("gone", 2)
	expect(t, st, "gone0", "e1", hooktest.URL(1).Reveal())
}

// erasesBeforeSet sets a webhook between any two requests of an erase, of an entity or of all. It
// must not be lost.
func erasesBeforeSet(t *testing.T, c *etcdcluster.Cluster) {
	for _, set := range []webhookcfg.Change{hooktest.Set("acme", "e1", 3), hooktest.SetAll("acme", 3)} {
		for after, isOver := 1, false; !isOver; after++ {
			client, o := c.Client(t), newOptions()
			other := open(t, c, o)
			hooktest.Apply(t, other, hooktest.Set("acme", "e0", 1), hooktest.UnsetAll("acme", 2))
			requests := 0
			client.KV = &kv{client.KV, func(*clientv3.TxnResponse) {
				if requests++; requests == after {
					hooktest.Apply(t, other, set)
				}
			}}
			st := openOn(t, client, o)
			if err := st.Erase(t.Context(), "acme"); err != nil {
				t.Fatal(err)
			}
			if isOver = requests < after; isOver {
				hooktest.Apply(t, other, set)
			}
			expect(t, other, "acme", "e0", map[bool]string{true: set.URL.Reveal()}[set.Scope.IsAll()])
			expect(t, other, "acme", "e1", set.URL.Reveal())
		}
	}
}

// erasesConcurrently checks that erasing doesn't break histories.
func erasesConcurrently(t *testing.T, c *etcdcluster.Cluster) {
	checkDuring(t, c, eraseAll)
}

func eraseAll(ctx context.Context, st *etcdstore.Store) error {
	page, err := st.ListClients(ctx, "", 100)
	if err != nil {
		return err
	}
	for _, client := range page.Clients {
		if err := st.Erase(ctx, client); err != nil {
			return err
		}
	}
	return nil
}
