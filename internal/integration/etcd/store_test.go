// Package etcd tests package etcdstore with a cluster of three members, which are killed,
// frozen and compacted while it runs.
package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
)

func TestMain(m *testing.M) {
	etcdcluster.RunMember()
	os.Exit(m.Run())
}

// start starts a cluster for a test.
func start(t *testing.T, members int, o etcdcluster.Options) *etcdcluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: no etcd cluster of %d members is started", members)
	}
	return etcdcluster.Start(t, members, o)
}

// testTimeout is how long a test waits for something that must happen.
const testTimeout = 3 * time.Minute

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// newPrefix returns a unique key prefix.
func newPrefix() string { return fmt.Sprintf("test-%x/", rand.Uint64()) }

// newOptions returns options with their own keys.
func newOptions() *etcdstore.Options { return &etcdstore.Options{Prefix: newPrefix()} }

// open opens a store with its own client.
func open(t testing.TB, c *etcdcluster.Cluster, o *etcdstore.Options) *etcdstore.Store {
	t.Helper()
	return openOn(t, c.Client(t), o)
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

// replicas returns a function that opens three stores on one prefix, as three
// replicas of a service would.
func replicas(c *etcdcluster.Cluster) func(testing.TB) []linearizable.Store {
	return func(t testing.TB) (all []linearizable.Store) {
		o := newOptions()
		for range 3 {
			all = append(all, open(t, c, o))
		}
		return all
	}
}

// expect checks the URL of an entity. "" means none.
func expect(t *testing.T, st webhookcfg.Store, client, entity, url string) {
	t.Helper()
	hook, err := st.Resolve(t.Context(), client, entity)
	if err != nil || hook.URL.Reveal() != url {
		t.Errorf("%s / %s has %q, want %q: %v", client, entity, hook.URL.Reveal(), url, err)
	}
}

// TestHealthy runs the tests that don't need a fault. They run in parallel and share the
// cluster, but not their keys.
func TestHealthy(t *testing.T) {
	c := start(t, 3, etcdcluster.Options{Election: 10 * time.Second})
	alone := start(t, 1, etcdcluster.Options{})
	for _, rule := range storetest.Cases() {
		on := c
		if strings.Contains(rule.Name, "agrees with the model") || strings.Contains(rule.Name, "too early") {
			on = alone // thousands of sequential reads
		}
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			conforms(t, on, rule)
		})
	}
	for name, test := range map[string]func(*testing.T, *etcdcluster.Cluster){
		"histories":           histories,
		"copies":              copies,
		"feed names all":      feedNamesAll,
		"feed, own stream":    feedHasOwnStream,
		"namespace":           namespaced,
		"notify":              notifies,
		"clients":             listsClients,
		"erase":               erases,
		"erase before a set":  erasesBeforeSet,
		"erase, concurrently": erasesConcurrently,
		"sweep":               sweeps,
		"sweep, in parts":     sweepsInParts,
		"sweep, concurrently": sweepsConcurrently,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// conforms runs one case of the conformance suite. The store implements all optional
// interfaces but Versioner.
func conforms(t *testing.T, c *etcdcluster.Cluster, rule storetest.Case) {
	client, o := c.Client(t), newOptions()
	another := func(webhookcfg.Store) webhookcfg.Store { return openOn(t, client, o) }
	// Without a deadline, a feed fails after seconds, and the machine can be slow.
	ctx, cancel := context.WithTimeout(t.Context(), 5*testTimeout)
	defer cancel()
	err := rule.Check(ctx, storetest.Env{
		Store:    openOn(t, client, o),
		OpenPeer: another,
		Reopen: func(st webhookcfg.Store) webhookcfg.Store {
			if err := st.(*etcdstore.Store).Close(); err != nil {
				t.Error(err)
			}
			return another(st)
		},
		Crash: another,
	})
	if errors.Is(err, storetest.ErrAbsent) && strings.Contains(rule.Name, "versioner") {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
}

func histories(t *testing.T, c *etcdcluster.Cluster) {
	hot, spread := linearizable.Hot(), linearizable.Spread()
	hot.Histories, spread.Histories = 30, 8
	linearizable.Check(t, hot, replicas(c))
	linearizable.Check(t, spread, replicas(c))
}

func BenchmarkStore(b *testing.B) {
	c := etcdcluster.Start(b, 3, etcdcluster.Options{Sync: true})
	storetest.Benchmark(b, func(t testing.TB) webhookcfg.Store {
		return openOn(t, c.Client(t), newOptions())
	})
}

// namespaced checks that keys and watches respect the client's namespace.
func namespaced(t *testing.T, c *etcdcluster.Cluster) {
	space := newPrefix()
	client, raw := c.Client(t), c.Client(t)
	client.KV = namespace.NewKV(client.KV, space)
	client.Watcher = namespace.NewWatcher(client.Watcher, space)
	st := openOn(t, client, nil)
	reader := readFeed(t, st)
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
	if reader.catchUp(t); !reader.named["acme"] {
		t.Errorf("named %v", reader.named)
	}
	expect(t, openOn(t, raw, &etcdstore.Options{Prefix: space + "webhookcfg/"}), "acme", "e1", hooktest.URL(1).Reveal())
}
