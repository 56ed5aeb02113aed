// Package etcd tests the store in etcd against a cluster of three members, which
// are killed, frozen and compacted under it.
package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestMain(m *testing.M) {
	etcdcluster.RunMember()
	os.Exit(m.Run())
}

// start starts a cluster for a test.
func start(t *testing.T, members int) *etcdcluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: no etcd cluster of %d members is started", members)
	}
	return etcdcluster.Start(t, members)
}

// patience is how long a test waits for what must come.
const patience = time.Minute

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newPrefix is one that no other test has.
func newPrefix() string { return fmt.Sprintf("test-%x/", rand.Uint64()) }

// open opens a store on a client of its own; a nil breaking leaves the client whole.
func open(t testing.TB, c *etcdcluster.Cluster, o *etcdstore.Options, breaking func(*clientv3.Client)) *etcdstore.Store {
	t.Helper()
	client := c.Client(t)
	if breaking != nil {
		breaking(client)
	}
	return openOn(t, client, o)
}

func openOn(t testing.TB, client *clientv3.Client, o *etcdstore.Options) *etcdstore.Store {
	t.Helper()
	st, err := etcdstore.New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// handles returns a function that opens three stores on one prefix, as three
// replicas of a service would.
func handles(c *etcdcluster.Cluster, breaking func(*clientv3.Client)) func(testing.TB) []linearizable.Store {
	return func(t testing.TB) (all []linearizable.Store) {
		o := &etcdstore.Options{Prefix: newPrefix()}
		for range 3 {
			all = append(all, open(t, c, o, breaking))
		}
		return all
	}
}

func hookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/%d", n) }

func set(client, entity string, n int) webhookcfg.Change {
	return webhookcfg.Set(client, webhookcfg.Entity(entity), egress.NewURL(hookURL(n)))
}

func setAll(client string, n int) webhookcfg.Change {
	return webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(hookURL(n)))
}

// apply makes a change that must not fail.
func apply(t *testing.T, st webhookcfg.Store, c webhookcfg.Change) {
	t.Helper()
	if err := st.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// expect expects a URL, or none for "".
func expect(t *testing.T, st webhookcfg.Store, client, entity, url string) {
	t.Helper()
	hook, err := st.Resolve(t.Context(), client, entity)
	if err != nil || hook.URL.Reveal() != url {
		t.Errorf("%s / %s has %q, want %q: %v", client, entity, hook.URL.Reveal(), url, err)
	}
}
