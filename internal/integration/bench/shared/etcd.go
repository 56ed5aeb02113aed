package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// etcdDatabase is a cluster.
type etcdDatabase struct{ cluster *etcdcluster.Cluster }

func (d etcdDatabase) open(t testing.TB, prefix string) webhookcfg.Store {
	t.Helper()
	st, err := etcdstore.New(d.cluster.Client(t), &etcdstore.Options{Prefix: prefix + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func (d etcdDatabase) bare(t testing.TB, prefix string) client {
	t.Helper()
	return etcdClient{d.cluster.Client(t), prefix + "/"}
}

// fill puts as many keys in one transaction as a server takes.
func (d etcdDatabase) fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error {
	c := etcdClient{d.cluster.Client(t), prefix + "/"}
	const atOnce = 128
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(many)
	for first := 0; first < n; first += atOnce {
		group.Go(func() error {
			var puts []clientv3.Op
			for i := first; i < min(first+atOnce, n); i++ {
				change := nth(i)
				puts = append(puts, clientv3.OpPut(c.key(change.Client, change.Scope.Entity()), value(change)))
			}
			_, err := c.Txn(ctx).Then(puts...).Commit()
			return err
		})
	}
	return group.Wait()
}

// etcdClient makes the same calls as the store.
type etcdClient struct {
	*clientv3.Client
	prefix string
}

func (c etcdClient) key(client, entity string) string { return c.prefix + client + "/" + entity }

func value(c webhookcfg.Change) string { return fmt.Sprint("1 ", c.Time.Unix(), " ", c.URL.Reveal()) }

func (c etcdClient) set(ctx context.Context, change webhookcfg.Change) error {
	_, err := c.Put(ctx, c.key(change.Client, change.Scope.Entity()), value(change))
	return err
}

func (c etcdClient) url(ctx context.Context, client, entity string) (string, error) {
	got, err := c.Txn(ctx).Then(clientv3.OpGet(c.key(client, "")), clientv3.OpGet(c.key(client, entity))).Commit()
	if err != nil {
		return "", err
	}
	base, override := got.Responses[0].GetResponseRange().Kvs, got.Responses[1].GetResponseRange().Kvs
	if len(base) > 0 && (len(override) == 0 || override[0].ModRevision <= base[0].ModRevision) {
		override = base
	}
	if len(override) == 0 {
		return "", nil
	}
	_, rest, _ := strings.Cut(string(override[0].Value), " ")
	_, url, _ := strings.Cut(rest, " ")
	return url, nil
}
