package etcd_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/etcdstore"
)

// TestFaults runs the tests that kill, freeze and compact members, one after another.
func TestFaults(t *testing.T) {
	c := start(t, 3, etcdcluster.Options{Election: 2 * time.Second})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *etcdcluster.Cluster)
	}{
		{"page is a snapshot", pageIsSnapshot},
		{"page, compacted", pageCompacted},
		{"page skips void keys", pageSkipsVoidKeys},
		{"feed, compacted", feedCompacted},
		{"leader killed", leaderKilled},
		{"leader killed, nothing lost", nothingLost},
		{"leader frozen", leaderFrozen},
		{"watch endpoint frozen", watchFrozen},
		{"endpoint frozen", endpointFrozen},
		{"watch fails over", watchFailsOver},
		{"majority lost", majorityLost},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// others returns all members but one.
func others(c *etcdcluster.Cluster, but int) (all []int) {
	for n := range c.Size() {
		if n != but {
			all = append(all, n)
		}
	}
	return all
}

// killLeader kills the leader, waits for the next one, and restarts it.
func killLeader(ctx context.Context, c *etcdcluster.Cluster) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	c.Kill(leader)
	_, errElection := c.Leader(ctx, others(c, leader)...)
	return errors.Join(errElection, c.Restart(leader), c.Await(ctx, leader))
}

// freezeLeader freezes the leader until there is another one.
func freezeLeader(ctx context.Context, c *etcdcluster.Cluster) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	if err := c.Freeze(leader); err != nil {
		return err
	}
	_, errElection := c.Leader(ctx, others(c, leader)...)
	return errors.Join(errElection, c.Thaw(leader), c.Await(ctx, leader))
}

// faultWorkload returns a workload of one history with a fault.
func faultWorkload(t *testing.T, c *etcdcluster.Cluster, inject func(context.Context, *etcdcluster.Cluster) error) linearizable.Workload {
	s := linearizable.Hot()
	s.Goroutines, s.Histories, s.Operations = []int{6}, 1, 60
	s.Fault = func() error { return inject(timeout(t), c) }
	return s
}

func leaderKilled(t *testing.T, c *etcdcluster.Cluster) {
	linearizable.Check(t, faultWorkload(t, c, killLeader), replicas(c))
}

// leaderFrozen freezes the leader. When it's thawed, it still believes for a moment that it's
// the leader.
func leaderFrozen(t *testing.T, c *etcdcluster.Cluster) {
	canFreeze(t)
	linearizable.Check(t, faultWorkload(t, c, freezeLeader), replicas(c))
}

func canFreeze(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be frozen on this system")
	}
}

// nothingLost checks that changes that were acknowledged while the leader was killed are
// still there, and that the feed has reported them without a Reset.
func nothingLost(t *testing.T, c *etcdcluster.Cluster) {
	o := newOptions()
	feed := open(t, c, o)
	writers := []*etcdstore.Store{open(t, c, o), open(t, c, o), open(t, c, o)}
	ctx, acks, reader := timeout(t), new(ackLog), readFeedHastily(t, feed)
	var group errgroup.Group
	group.Go(func() error {
		if err := acks.await(ctx, 60); err != nil {
			return err
		}
		return killLeader(ctx, c)
	})
	group.Go(func() error {
		if err := write(ctx, writers, 150, acks); !errors.Is(err, etcdstore.ErrOutcomeUnknown) {
			return err
		}
		return nil // some were pending when we killed the leader
	})
	over := make(chan error, 1)
	go func() { over <- group.Wait() }()
	reader.expectNoneMissed(t, acks, over)
	if reader.resets != 1 {
		t.Errorf("%d Resets", reader.resets)
	}
	for _, client := range acks.read() {
		if hook, err := feed.Resolve(t.Context(), client, "e1"); err != nil || hook.URL.IsZero() {
			t.Fatalf("the change of %s was lost: %v", client, err)
		}
	}
	t.Logf("%d of 450 changes were acknowledged", len(acks.read()))
}

// expectNoneMissed polls until the writers are done and a later poll has succeeded.
func (reader *feedReader) expectNoneMissed(t *testing.T, acks *ackLog, over <-chan error) {
	t.Helper()
	ctx, last := timeout(t), false
	for {
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			last = true
		default:
		}
		client, err := reader.missed(ctx, acks)
		switch {
		case client != "":
			t.Fatalf("%s was missed", client)
		case ctx.Err() != nil:
			t.Fatal(err)
		case err == nil && last:
			return
		}
	}
}

// watching opens a store that watches through one member only, because its watcher is
// wrapped. All other requests go to the other members.
func watching(t *testing.T, c *etcdcluster.Cluster, member int, o *etcdstore.Options) *etcdstore.Store {
	client := c.Client(t, others(c, member)...)
	client.Watcher = struct{ clientv3.Watcher }{c.Client(t, member).Watcher}
	return openOn(t, client, o)
}

// follower returns a member that isn't the leader.
func follower(t *testing.T, c *etcdcluster.Cluster) int {
	t.Helper()
	leader, err := c.Leader(timeout(t))
	if err != nil {
		t.Fatal(err)
	}
	return (leader + 1) % c.Size()
}

// freeze freezes members until you call thaw.
func freeze(t *testing.T, c *etcdcluster.Cluster, members ...int) (thaw func()) {
	t.Helper()
	canFreeze(t)
	for _, n := range members {
		if err := c.Freeze(n); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, n := range members {
			if err := errors.Join(c.Thaw(n), c.Await(timeout(t), n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// watchFrozen checks a watch that is silent while the cluster responds. The feed must fail,
// and report all changes when the member is thawed.
func watchFrozen(t *testing.T, c *etcdcluster.Cluster) {
	member := follower(t, c)
	st := watching(t, c, member, newOptions())
	reader := readFeedHastily(t, st)
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
	reader.catchUp(t)
	thaw := freeze(t, c, member)
	hooktest.Apply(t, st, hooktest.Set("zeta", "e1", 2))
	reader.expectBehind(t)
	thaw()
	reader.catchUp(t)
	if !reader.named["acme"] || !reader.named["zeta"] || reader.resets != 1 {
		t.Errorf("%d Resets, named %v", reader.resets, reader.named)
	}
}

// endpointFrozen checks that the feed fails at its deadline when its only endpoint is
// frozen.
func endpointFrozen(t *testing.T, c *etcdcluster.Cluster) {
	member := follower(t, c)
	st := openOn(t, c.Client(t, member), newOptions())
	reader := readFeedHastily(t, st)
	thaw := freeze(t, c, member)
	defer thaw()
	reader.expectBehind(t)
}

// watchFailsOver checks that feeds recover through another member while one stays frozen.
func watchFailsOver(t *testing.T, c *etcdcluster.Cluster) {
	member := follower(t, c)
	var readers []*feedReader
	var writer []*etcdstore.Store // on the other members
	for range 4 {
		o := newOptions()
		st := openOn(t, c.Client(t, member, (member+1)%c.Size()), o)
		writer = append(writer, openOn(t, c.Client(t, others(c, member)...), o))
		reader := readFeedHastily(t, st)
		hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
		reader.catchUp(t)
		readers = append(readers, reader)
	}
	thaw := freeze(t, c, member)
	defer thaw()
	for n, reader := range readers {
		hooktest.Apply(t, writer[n], hooktest.Set("zeta", "e1", 1))
		reader.catchUp(t)
		if !reader.named["zeta"] || reader.resets != 1 {
			t.Errorf("%d Resets, named %v", reader.resets, reader.named)
		}
	}
}
