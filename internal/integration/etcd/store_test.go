package etcd_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestHealthy has what is asked of the store while all members are well. What goes
// on at once shares the cluster, but no keys.
func TestHealthy(t *testing.T) {
	c, alone := start(t, 3), start(t, 1)
	for _, rule := range storetest.Cases() {
		on := c
		if strings.Contains(rule.Name, "agrees with the model") || strings.Contains(rule.Name, "too early") {
			on = alone // thousands of reads, one after the other
		}
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			conforms(t, on, rule)
		})
	}
	for name, test := range map[string]func(*testing.T, *etcdcluster.Cluster){
		"histories":        histories,
		"broken stores":    brokenStores,
		"feed names all":   feedNamesAll,
		"feed, no barrier": feedWithoutBarrier,
		"feed, too many":   feedTooMany,
		"namespace":        namespaced,
		"notify":           notifies,
		"sweep":            sweeps,
		"sweep goes on":    sweepsOn,
		"sweep beside":     sweepsBeside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// conforms runs one case of the conformance suite; the store lacks no ability but
// that of a Versioner.
func conforms(t *testing.T, c *etcdcluster.Cluster, rule storetest.Case) {
	client := c.Client(t)
	o := &etcdstore.Options{Prefix: newPrefix()}
	another := func(webhookcfg.Store) webhookcfg.Store { return openOn(t, client, o) }
	err := rule.Check(t.Context(), storetest.Env{
		Store:   openOn(t, client, o),
		Another: another,
		Reopen: func(st webhookcfg.Store) webhookcfg.Store {
			if err := st.(*etcdstore.Store).Close(); err != nil {
				t.Error(err)
			}
			return another(st)
		},
	})
	if errors.Is(err, storetest.ErrAbsent) && strings.HasPrefix(rule.Name, "versioner") {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
}

func histories(t *testing.T, c *etcdcluster.Cluster) {
	hot, spread := linearizable.Hot(), linearizable.Spread()
	hot.Rounds, spread.Rounds = 30, 8
	linearizable.Check(t, hot, handles(c, nil))
	linearizable.Check(t, spread, handles(c, nil))
}

func brokenStores(t *testing.T, c *etcdcluster.Cluster) {
	for name, breaking := range map[string]func(*clientv3.Client){
		"serializable":  serializable,
		"ageless":       ageless,
		"deletes bases": deletesBases,
		"retries":       retries,
	} {
		t.Run(name, func(t *testing.T) {
			linearizable.MustFail(t, linearizable.Hot(), handles(c, breaking))
		})
	}
}

func BenchmarkStore(b *testing.B) {
	c := etcdcluster.Start(b, 3)
	storetest.Benchmark(b, func(t testing.TB) webhookcfg.Store {
		return openOn(t, c.Client(t), &etcdstore.Options{Prefix: newPrefix()})
	})
}
