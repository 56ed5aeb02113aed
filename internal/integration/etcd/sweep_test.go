package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// keysOf counts the keys under a prefix.
func keysOf(t *testing.T, client *clientv3.Client, prefix string) int64 {
	t.Helper()
	found, err := client.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return found.Count
}

func sweeps(t *testing.T, c *etcdcluster.Cluster) {
	client, o := c.Client(t), newOptions()
	st := openOn(t, client, o)
	hooktest.Apply(t, st, hooktest.Set("no base", "e1", 3)) // older than the base of the other client
	for n := range 40 {
		hooktest.Apply(t, st, hooktest.Set("acme", fmt.Sprint("void", n), n))
		hooktest.Apply(t, st, webhookcfg.UnsetChange("no base", webhookcfg.Entity(fmt.Sprint("unset", n))))
	}
	hooktest.Apply(t, st, hooktest.SetAll("acme", 1))
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 2))
	hooktest.Apply(t, st, webhookcfg.UnsetChange("acme", webhookcfg.Entity("off")))
	sum := etcdstore.Swept{}
	for calls := 0; !sum.Done; calls++ {
		some, err := st.Sweep(t.Context(), 7)
		if err != nil || some.Looked > 7 || calls > 100 {
			t.Fatalf("call %d: %+v, %v", calls, some, err)
		}
		sum.Looked, sum.Removed, sum.Done = sum.Looked+some.Looked, sum.Removed+some.Removed, some.Done
	}
	if want := (etcdstore.Swept{Looked: 84, Removed: 80, Done: true}); sum != want {
		t.Errorf("swept %+v, want %+v", sum, want)
	}
	if left := keysOf(t, client, o.Prefix); left != 4 {
		t.Errorf("%d keys are left, want 4", left)
	}
	expect(t, st, "acme", "e1", hooktest.URL(2).Reveal())
	expect(t, st, "acme", "off", "")
	expect(t, st, "acme", "void1", hooktest.URL(1).Reveal())
	expect(t, st, "no base", "e1", hooktest.URL(3).Reveal())
}

// sweepsInParts gives a client a base between two calls of Sweep. The first call ended in the
// middle of that client. A later unset must then mean off.
func sweepsInParts(t *testing.T, c *etcdcluster.Cluster) {
	st := open(t, c, newOptions())
	for _, entity := range []string{"e1", "e2", "e3"} {
		hooktest.Apply(t, st, webhookcfg.UnsetChange("acme", webhookcfg.Entity(entity)))
	}
	if swept, err := st.Sweep(t.Context(), 1); err != nil || swept.Removed != 1 {
		t.Fatalf("swept %+v: %v", swept, err)
	}
	hooktest.Apply(t, st, hooktest.SetAll("acme", 1))
	hooktest.Apply(t, st, webhookcfg.UnsetChange("acme", webhookcfg.Entity("e2")))
	if swept, err := st.Sweep(t.Context(), 10); err != nil || swept.Removed > 1 || !swept.Done {
		t.Errorf("swept %+v: %v", swept, err)
	}
	expect(t, st, "acme", "e1", hooktest.URL(1).Reveal())
	expect(t, st, "acme", "e2", "")
	expect(t, st, "acme", "e3", hooktest.URL(1).Reveal())
}

// copies copies a store's keys one by one in their order. The copy resolves like the original
// if you swept the original first. Otherwise, dropped overrides come back.
func copies(t *testing.T, c *etcdcluster.Cluster) {
	client, from, unswept, swept := c.Client(t), newPrefix(), newPrefix(), newPrefix()
	st := openOn(t, client, &etcdstore.Options{Prefix: from})
	hooktest.Apply(t, st, hooktest.Set("acme", "dropped", 1))
	hooktest.Apply(t, st, hooktest.SetAll("acme", 2))
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 3))
	hooktest.Apply(t, st, webhookcfg.UnsetChange("acme", webhookcfg.Entity("off")))
	copyKeys(t, client, from, unswept)
	if swept, err := st.Sweep(t.Context(), 100); err != nil || !swept.Done {
		t.Fatalf("swept %+v: %v", swept, err)
	}
	copyKeys(t, client, from, swept)
	for _, test := range []struct{ prefix, dropped string }{
		{from, hooktest.URL(2).Reveal()}, {unswept, hooktest.URL(1).Reveal()}, {swept, hooktest.URL(2).Reveal()},
	} {
		st := openOn(t, client, &etcdstore.Options{Prefix: test.prefix})
		expect(t, st, "acme", "dropped", test.dropped)
		expect(t, st, "acme", "e1", hooktest.URL(3).Reveal())
		expect(t, st, "acme", "off", "")
		expect(t, st, "acme", "other", hooktest.URL(2).Reveal())
	}
}

func copyKeys(t *testing.T, client *clientv3.Client, from, to string) {
	t.Helper()
	found, err := client.Get(t.Context(), from, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		key := to + strings.TrimPrefix(string(kv.Key), from)
		if _, err := client.Put(t.Context(), key, string(kv.Value)); err != nil {
			t.Fatal(err)
		}
	}
}

// sweepsConcurrently checks that a sweep at the same time doesn't break histories.
func sweepsConcurrently(t *testing.T, c *etcdcluster.Cluster) {
	checkDuring(t, c, func(ctx context.Context, st *etcdstore.Store) error {
		_, err := st.Sweep(ctx, 100)
		return err
	})
}

// checkDuring checks histories of two stores while a third one works on the same keys.
func checkDuring(t *testing.T, c *etcdcluster.Cluster, work func(context.Context, *etcdstore.Store) error) {
	stores := func(t testing.TB) (all []linearizable.Store) {
		o := newOptions()
		worker := open(t, c, o)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		t.Cleanup(func() { cancel(); <-done })
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				if err := work(ctx, worker); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		}()
		return append(all, open(t, c, o), open(t, c, o))
	}
	hot := linearizable.Hot()
	hot.Histories = 20
	linearizable.Check(t, hot, stores)
}
