package etcd_test

import (
	"testing"

	"go.etcd.io/etcd/client/v3/namespace"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
)

// namespaced: what the client was wrapped in holds for the keys and the watch.
func namespaced(t *testing.T, c *etcdcluster.Cluster) {
	space := newPrefix()
	client, raw := c.Client(t), c.Client(t)
	client.KV = namespace.NewKV(client.KV, space)
	client.Watcher = namespace.NewWatcher(client.Watcher, space)
	st := openOn(t, client, nil)
	ch := begin(t, st)
	apply(t, st, set("acme", "e1", 1))
	if err := ch.call(soon(t)); err != nil || !ch.named["acme"] {
		t.Errorf("named %v: %v", ch.named, err)
	}
	expect(t, openOn(t, raw, &etcdstore.Options{Prefix: space + "webhookcfg/"}), "acme", "e1", hookURL(1))
}
