package etcdstore_test

import (
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/etcdstore"
)

// The comments say when you'd set each option. Leave the others at their defaults.
func ExampleOptions() {
	open := func(client *clientv3.Client) (*etcdstore.Store, error) {
		return etcdstore.New(client, &etcdstore.Options{
			// Several services keep their webhooks in one cluster.
			Prefix: "billing/webhooks/",
			// You want to know when sweeps fail.
			Logger: slog.Default(),
		})
	}
	_ = open
}
