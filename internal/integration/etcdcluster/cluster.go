package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// timeout is how long a cluster can take to start.
const timeout = 2 * time.Minute

// Options are the settings of a cluster. The zero value is right for tests that end
// processes.
type Options struct {
	// Quota limits the database of each member, in bytes. The default is etcd's.
	Quota int64
	// Election is how long a follower waits for a silent leader, at least five heartbeats of
	// 100 ms. The default is one second. Set a long time if your test doesn't need another
	// leader, so that a busy machine doesn't elect one.
	Election time.Duration
	// Sync makes the members wait for the disk, as in production. Otherwise, acknowledged
	// changes survive the end of a member, but not of the machine.
	Sync bool
}

// Cluster is a running cluster. Members are numbered from 0.
type Cluster struct {
	members  []*member
	launcher *launcher
}

// Start starts a cluster, waits until all members respond, and stops it with the test. If the
// cluster can't start, the test fails.
func Start(t testing.TB, size int, o Options) *Cluster {
	t.Helper()
	dir := t.TempDir() // before the cleanup, so it's removed when no member writes to it any more
	c := &Cluster{launcher: newLauncher()}
	t.Cleanup(func() { c.stop(t) })
	configs, err := memberConfigs(dir, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range configs {
		d.Options = o
		m := &member{memberConfig: d, launcher: c.launcher}
		c.members = append(c.members, m)
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for n := range c.members {
		if err := c.Await(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// memberConfigs finds a free address for each client and peer endpoint.
func memberConfigs(dir string, size int) ([]memberConfig, error) {
	host := loopback()
	var all []memberConfig
	var cluster []string
	for n := range size {
		d := memberConfig{Name: fmt.Sprint("member", n), Dir: filepath.Join(dir, fmt.Sprint(n))}
		if err := os.Mkdir(d.Dir, 0o700); err != nil {
			return nil, err
		}
		for _, address := range []*string{&d.Client, &d.Peer} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				return nil, err
			}
			defer l.Close() // keep them open until all are allocated, so that they differ
			*address = "http://" + l.Addr().String()
		}
		all = append(all, d)
		cluster = append(cluster, d.Name+"="+d.Peer)
	}
	for n := range all {
		all[n].Cluster = strings.Join(cluster, ",")
	}
	return all, nil
}

func (c *Cluster) stop(t testing.TB) {
	for _, m := range c.members {
		m.kill()
		if text, err := os.ReadFile(filepath.Join(m.Dir, "log")); err == nil && t.Failed() {
			t.Logf("the end of the log of %s:\n%s", m.Name, text[max(0, len(text)-2000):])
		}
	}
	c.launcher.close()
}

// Size returns the number of members.
func (c *Cluster) Size() int { return len(c.members) }

// Data returns the data directory of a member.
func (c *Cluster) Data(n int) string { return c.members[n].Dir }

// Client returns a client of the given members, or of all if you give none. It's closed when
// the test ends.
func (c *Cluster) Client(t testing.TB, members ...int) *clientv3.Client {
	t.Helper()
	client, err := c.dial(members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ClientOf returns a client of all members, with the given user and password, or token. It's
// closed when the test ends.
func (c *Cluster) ClientOf(t testing.TB, config clientv3.Config) *clientv3.Client {
	t.Helper()
	config.Endpoints, config.Logger = c.endpoints(), zap.NewNop()
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (c *Cluster) dial(members ...int) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: c.endpoints(members...), Logger: zap.NewNop()})
}

// endpoints returns the addresses of the given members, or of all if there are none.
func (c *Cluster) endpoints(members ...int) (endpoints []string) {
	for n, m := range c.members {
		if len(members) == 0 || slices.Contains(members, n) {
			endpoints = append(endpoints, m.Client)
		}
	}
	return endpoints
}

// Await waits until a member can serve a linearizable read. That takes a majority.
func (c *Cluster) Await(ctx context.Context, n int) error {
	return c.retry(ctx, n, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, "x", clientv3.WithCountOnly())
		return err
	})
}

var errNotLeader = errors.New("etcdcluster: not the leader")

// Leader waits until one of the given members says that it's the leader. If you give none, it
// asks all.
func (c *Cluster) Leader(ctx context.Context, members ...int) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan int, len(c.members))
	var group errgroup.Group
	for n := range c.members {
		if len(members) > 0 && !slices.Contains(members, n) {
			continue
		}
		group.Go(func() error {
			return c.retry(ctx, n, func(ctx context.Context, client *clientv3.Client) error {
				status, err := client.Status(ctx, c.members[n].Client)
				if err == nil && status.Leader != status.Header.MemberId {
					return errNotLeader
				}
				if err == nil {
					found <- n
					cancel()
				}
				return err
			})
		})
	}
	err := group.Wait()
	select {
	case n := <-found:
		return n, nil
	default:
		return 0, err
	}
}

// retry repeats a request to a member until it succeeds. Each try has a few seconds.
func (c *Cluster) retry(ctx context.Context, n int, request func(context.Context, *clientv3.Client) error) error {
	client, err := c.dial(n)
	if err != nil {
		return err
	}
	defer client.Close()
	for every := time.NewTicker(20 * time.Millisecond); ; <-every.C {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := request(once, client)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", c.members[n].Name, err)
		}
	}
}
