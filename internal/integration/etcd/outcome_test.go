package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestOutcomes makes changes fail in several ways, on a member whose database gets full in
// the end.
func TestOutcomes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no etcd cluster is started")
	}
	c := etcdcluster.Start(t, 1, etcdcluster.Options{Quota: 16 << 20})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *etcdcluster.Cluster)
	}{
		{"too large", changeTooLarge},
		{"no permission", changesWithoutPermission},
		{"no space", changesWithoutSpace},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// expectRejected makes a change that must fail with the given error, and checks through
// another store that it has no effect.
func expectRejected(t *testing.T, st, other *etcdstore.Store, c webhookcfg.Change, want error) {
	t.Helper()
	if err := st.Apply(timeout(t), c); !errors.Is(err, want) || errors.Is(err, etcdstore.ErrOutcomeUnknown) {
		t.Errorf("got %.200q, want %q with a known outcome", fmt.Sprint(err), want)
	}
	expect(t, other, c.Client, c.Scope.Entity(), "")
}

func changeTooLarge(t *testing.T, c *etcdcluster.Cluster) {
	st := open(t, c, newOptions())
	large := hooktest.Set("acme", "e1", 1)
	large.URL = egress.NewURL(hooktest.URL(1).Reveal() + strings.Repeat("x", 1536<<10))
	expectRejected(t, st, st, large, rpctypes.ErrRequestTooLarge)
}

// changesWithoutPermission turns on the cluster's authentication until it's done.
func changesWithoutPermission(t *testing.T, c *etcdcluster.Cluster) {
	ctx, o := timeout(t), newOptions()
	anonymous := c.Client(t)
	as := func(user, password string) clientv3.Config {
		return clientv3.Config{Username: user, Password: password}
	}
	_, errRoot := anonymous.UserAdd(ctx, "root", "1")
	_, errRole := anonymous.RoleAdd(ctx, "root")
	_, errGrant := anonymous.UserGrantRole(ctx, "root", "root")
	_, errReader := anonymous.UserAdd(ctx, "reader", "2")
	_, errRenewed := anonymous.UserAdd(ctx, "renewed", "3")
	_, errEnable := anonymous.AuthEnable(ctx)
	if err := errors.Join(errRoot, errRole, errGrant, errReader, errRenewed, errEnable); err != nil {
		t.Fatal(err)
	}
	root := c.ClientOf(t, as("root", "1"))
	defer func() {
		if _, err := root.AuthDisable(timeout(t)); err != nil {
			t.Fatal(err)
		}
	}()
	other, renewed := openOn(t, root, o), c.ClientOf(t, as("renewed", "3"))
	if _, err := root.UserChangePassword(ctx, "renewed", "4"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		client *clientv3.Client
		want   error
	}{
		{"a user without the permission", c.ClientOf(t, as("reader", "2")), rpctypes.ErrPermissionDenied},
		{"no user", anonymous, rpctypes.ErrUserEmpty},
		{"an unknown token", c.ClientOf(t, clientv3.Config{Token: "x.1"}), rpctypes.ErrInvalidAuthToken},
		{"a password that was changed", renewed, rpctypes.ErrAuthFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := openOn(t, test.client, o)
			expectRejected(t, st, other, hooktest.Set("acme", "e1", 1), test.want)
			if err := st.Healthy(timeout(t)); !errors.Is(err, test.want) {
				t.Errorf("Healthy: %v, want %v", err, test.want)
			}
		})
	}
}

// changesWithoutSpace fills the database with 64 writers, several times if need be, and then
// frees the space. Each writer's error must report an unknown outcome: etcd applies some of
// the failing changes, because it only notices then that there's no space.
func changesWithoutSpace(t *testing.T, c *etcdcluster.Cluster) {
	client := c.Client(t)
	st := openOn(t, client, newOptions())
	applied := 0
	for range 20 {
		applied = fillDatabase(t, st)
		awaitHealth(t, st, rpctypes.ErrNoSpace)
		freeSpace(t, client)
		awaitHealth(t, st, nil)
		if applied > 0 {
			break
		}
	}
	if applied == 0 {
		t.Error("none of the changes that failed was applied")
	}
	hooktest.Apply(t, st, hooktest.Set("acme", "e1", 1))
}

// awaitHealth waits until Healthy returns the error, which takes a second.
func awaitHealth(t *testing.T, st *etcdstore.Store, want error) {
	t.Helper()
	for ctx := timeout(t); ; time.Sleep(20 * time.Millisecond) {
		err := st.Healthy(ctx)
		if errors.Is(err, want) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("Healthy: %v, want %v", err, want)
		}
	}
}

// fillDatabase lets writers make changes until each has failed. It returns how many of the
// failed changes were applied.
func fillDatabase(t *testing.T, st webhookcfg.Store) (applied int) {
	t.Helper()
	const writers = 64
	ctx, pad := timeout(t), strings.Repeat("x", 1500)
	var last [writers]int64 // the time of the failed change, in Unix seconds
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for {
				last[w]++
				change := webhookcfg.SetChange(fmt.Sprint("client-", w), webhookcfg.Entity("e1"), egress.NewURL(hooktest.URL(1).Reveal()+pad))
				change.Time = time.Unix(last[w], 0)
				switch err := st.Apply(ctx, change); {
				case err == nil:
				case errors.Is(err, rpctypes.ErrNoSpace) && errors.Is(err, etcdstore.ErrOutcomeUnknown):
					return nil
				default:
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		hook, err := st.Resolve(ctx, fmt.Sprint("client-", w), "e1")
		if err != nil {
			t.Fatal(err)
		}
		if hook.Since.Unix() == last[w] {
			applied++
		}
	}
	t.Logf("%d of %d changes that failed were applied", applied, writers)
	return applied
}

// freeSpace frees space, as the operator of a full member would.
func freeSpace(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx := timeout(t)
	found, err := client.Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, errCompact := client.Compact(ctx, found.Header.Revision, clientv3.WithCompactPhysical())
	_, errDefragment := client.Defragment(ctx, client.Endpoints()[0])
	_, errDisarm := client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	if err := errors.Join(errCompact, errDefragment, errDisarm); err != nil {
		t.Fatal(err)
	}
}

// rejectedWithoutLeader makes changes through a member without a majority, until one is
// rejected because there's no leader. It returns the entity of that change. Before, the
// member may still wait for the leader's response.
func rejectedWithoutLeader(t *testing.T, st *etcdstore.Store, client string) (entity string) {
	t.Helper()
	all := timeout(t)
	for n := 0; ; n++ {
		entity := fmt.Sprint("without-leader-", n)
		ctx, cancel := context.WithTimeout(all, time.Second)
		err := st.Apply(clientv3.WithRequireLeader(ctx), hooktest.Set(client, entity, n))
		cancel()
		switch {
		case errors.Is(err, rpctypes.ErrNoLeader) && !errors.Is(err, etcdstore.ErrOutcomeUnknown):
			return entity
		case !errors.Is(err, etcdstore.ErrOutcomeUnknown) || all.Err() != nil:
			t.Fatalf("change %d: %v", n, err)
		}
	}
}
