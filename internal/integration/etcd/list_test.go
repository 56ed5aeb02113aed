package etcd_test

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
)

// fill writes overrides directly, many in a transaction.
func fill(t *testing.T, client *clientv3.Client, prefix string, count int) {
	t.Helper()
	for n := 0; n < count; n += 100 {
		var puts []clientv3.Op
		for m := n; m < n+100; m++ {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%sacme/e%05d", prefix, m), "1 0 "+hooktest.URL(m).Reveal()))
		}
		if _, err := client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// pageIsSnapshot checks that a page that needs several requests doesn't show changes made
// between them.
func pageIsSnapshot(t *testing.T, c *etcdcluster.Cluster) {
	const count = 1500
	client, o := c.Client(t), newOptions()
	other := open(t, c, o)
	fill(t, client, o.Prefix, count)
	requests := 0
	client.KV = &kv{KV: client.KV, seen: func(*clientv3.TxnResponse) {
		if requests++; requests == 1 {
			hooktest.Apply(t, other, hooktest.SetAll("acme", 1))
			hooktest.Apply(t, other, hooktest.Set("acme", "e01400", 2))
			hooktest.Apply(t, other, hooktest.Set("acme", "e99999", 3))
		}
	}}
	page, err := openOn(t, client, o).List(t.Context(), "acme", "", count)
	if err != nil || len(page.Overrides) != count || page.Next != "" || requests < 2 {
		t.Fatalf("%d overrides in %d requests, next %q: %v", len(page.Overrides), requests, page.Next, err)
	}
	for n, o := range page.Overrides {
		if o.Webhook.URL.Reveal() != hooktest.URL(n).Reveal() {
			t.Errorf("%s has %s", o.Entity, o.Webhook.URL.Reveal())
		}
	}
	if !page.Base.URL.IsZero() {
		t.Error("the base is of a later moment")
	}
}

// pageSkipsVoidKeys checks that a page skips only so many void keys, and that several pages
// skip all of them.
func pageSkipsVoidKeys(t *testing.T, c *etcdcluster.Cluster) {
	const void = 4300
	client, o := c.Client(t), newOptions()
	st := openOn(t, client, o)
	fill(t, client, o.Prefix, void)
	expect(t, st, "acme", "e00007", hooktest.URL(7).Reveal())
	hooktest.Apply(t, st, hooktest.SetAll("acme", 1))
	hooktest.Apply(t, st, hooktest.Set("acme", "e99999", 2))
	first, err := st.List(t.Context(), "acme", "", 10)
	if err != nil || len(first.Overrides) != 0 || first.Next != "e04095" {
		t.Fatalf("%d overrides, next %q: %v", len(first.Overrides), first.Next, err)
	}
	second, err := st.List(t.Context(), "acme", first.Next, 10)
	if err != nil || len(second.Overrides) != 1 || second.Next != "" {
		t.Errorf("%d overrides, next %q: %v", len(second.Overrides), second.Next, err)
	}
	if swept, err := st.Sweep(t.Context(), 2*void); err != nil || swept.Removed != void {
		t.Errorf("swept %+v: %v", swept, err)
	}
	page, err := st.List(t.Context(), "acme", "", 10)
	if err != nil || len(page.Overrides) != 1 {
		t.Errorf("%d overrides: %v", len(page.Overrides), err)
	}
}

// pageCompacted compacts the revision of a page before its second request. The page ends
// there and still shows one moment. The next page continues after it.
func pageCompacted(t *testing.T, c *etcdcluster.Cluster) {
	const count = 1500
	client, o := c.Client(t), newOptions()
	other := open(t, c, o)
	fill(t, client, o.Prefix, count)
	requests := 0
	client.KV = &kv{KV: client.KV, seen: func(response *clientv3.TxnResponse) {
		if requests++; requests > 1 {
			return
		}
		for n := range count {
			if n%500 == 0 {
				hooktest.Apply(t, other, hooktest.Set("acme", fmt.Sprintf("e%05d", n), count+n))
			}
		}
		if _, err := client.Compact(t.Context(), response.Header.Revision+1); err != nil {
			t.Error(err)
		}
	}}
	st := openOn(t, client, o)
	first, err := st.List(t.Context(), "acme", "", count)
	if err != nil || len(first.Overrides) == 0 || first.Next != first.Overrides[len(first.Overrides)-1].Entity {
		t.Fatalf("%d overrides, next %q: %v", len(first.Overrides), first.Next, err)
	}
	rest, err := st.List(t.Context(), "acme", first.Next, count)
	if err != nil || len(first.Overrides)+len(rest.Overrides) != count || rest.Next != "" {
		t.Fatalf("%d and %d overrides, next %q: %v", len(first.Overrides), len(rest.Overrides), rest.Next, err)
	}
	for n, o := range append(first.Overrides, rest.Overrides...) {
		want := hooktest.URL(n).Reveal()
		if n >= len(first.Overrides) && n%500 == 0 {
			want = hooktest.URL(count + n).Reveal()
		}
		if o.Webhook.URL.Reveal() != want {
			t.Errorf("%s has %s, want %s", o.Entity, o.Webhook.URL.Reveal(), want)
		}
	}
}

// kv wraps a client's key-value API, so that a test can act between two requests of the store.
type kv struct {
	clientv3.KV
	seen func(response *clientv3.TxnResponse)
}

func (b *kv) Txn(ctx context.Context) clientv3.Txn { return &txn{b.KV.Txn(ctx), b} }

type txn struct {
	clientv3.Txn
	kv *kv
}

func (b *txn) Then(ops ...clientv3.Op) clientv3.Txn { return &txn{b.Txn.Then(ops...), b.kv} }

func (b *txn) Commit() (*clientv3.TxnResponse, error) {
	response, err := b.Txn.Commit()
	if err == nil {
		b.kv.seen(response)
	}
	return response, err
}
