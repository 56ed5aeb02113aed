package etcdstore_test

import (
	"context"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// Open a store, and sweep a thousand keys each minute.
func ExampleNew() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"https://etcd-0:2379", "https://etcd-1:2379", "https://etcd-2:2379"},
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	st, err := etcdstore.New(client, &etcdstore.Options{Prefix: "billing/webhooks/"})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	for range time.Tick(time.Minute) {
		if _, err := st.Sweep(context.Background(), 1000); err != nil {
			log.Print(err)
		}
	}
	var _ webhookcfg.Store = st
}
