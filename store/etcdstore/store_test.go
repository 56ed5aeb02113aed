package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestNewInvalid(t *testing.T) {
	whole := &clientv3.Client{KV: &fakeKV{}, Watcher: newFakeWatcher()}
	for name, test := range map[string]struct {
		client  *clientv3.Client
		options *Options
	}{
		"no client":           {nil, nil},
		"a client without KV": {&clientv3.Client{Watcher: newFakeWatcher()}, nil},
		"one without Watcher": {&clientv3.Client{KV: &fakeKV{}}, nil},
		"a prefix, no slash":  {whole, &Options{Prefix: "webhooks"}},
	} {
		if _, err := New(test.client, test.options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func change() webhookcfg.Change {
	return webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL("https://hooks.example.com/t0ken"))
}

// TestChangeErrors: a rejected change was not applied. After any other error the outcome is
// unknown. The change is never sent twice.
func TestChangeErrors(t *testing.T) {
	type test struct {
		err     error
		unknown bool
	}
	tests := []test{
		{rpctypes.ErrNotCapable, false},
		{rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner), false},
		{rpctypes.ErrNoLeader, false},
		{rpctypes.ErrTooManyRequests, false},
		{rpctypes.ErrInvalidAuthToken, false},
		{rpctypes.ErrRequestTooLarge, false},
		{rpctypes.ErrUserEmpty, false},
		{rpctypes.ErrAuthOldRevision, false},
		{rpctypes.ErrPermissionDenied, false},
		{rpctypes.ErrAuthFailed, false},

		{rpctypes.ErrNoSpace, true},
		{rpctypes.ErrCorrupt, true},
		{rpctypes.ErrStopped, true},
		{rpctypes.ErrTimeout, true},
		{rpctypes.ErrTimeoutDueToLeaderFail, true},
		{rpctypes.ErrTimeoutDueToConnectionLost, true},
		{rpctypes.ErrTimeoutWaitAppliedIndex, true},
		{rpctypes.ErrLeaderChanged, true},
		{rpctypes.ErrUnhealthy, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, true},
		{errors.New("?"), true},
		{errors.New("proxy: PUT webhookcfg/acme/e1 https://hooks.example.com/t0ken"), true},
		{status.Error(codes.InvalidArgument, "value https://hooks.example.com/t0ken"), true},
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		tests = append(tests, test{status.Error(code, "not of etcd"), true})
	}
	for _, test := range tests {
		st, kv, _ := newFakeStore(t)
		kv.err = test.err
		err := st.Apply(t.Context(), change())
		if err == nil || errors.Is(err, ErrOutcomeUnknown) != test.unknown || !errors.Is(err, test.err) {
			t.Errorf("%v is reported as %v", test.err, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v %q", err, err, err, err), "t0ken") {
			t.Errorf("%v holds the URL", err)
		}
		if kv.puts != 1 {
			t.Errorf("%v: sent %d times", test.err, kv.puts)
		}
	}
}

// TestOneChangeOfAClient: one change of a client is sent at a time, and calls of other
// clients don't wait for it. If a change wasn't sent, its outcome is known.
func TestOneChangeOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, kv, _ := newFakeStore(t)
		held := keys(defaultPrefix).base("acme")
		kv.hold = func(ctx context.Context, key string) {
			if strings.HasPrefix(key, held) {
				<-ctx.Done()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 20)
		for range cap(results) {
			go func() { results <- st.Apply(ctx, change()) }()
		}
		synctest.Wait()
		if kv.puts != 1 {
			t.Errorf("%d changes of a client are sent concurrently", kv.puts)
		}
		another := change()
		another.Client = "zeta"
		if err := st.Apply(t.Context(), another); err != nil {
			t.Error(err)
		}
		if _, err := st.Resolve(t.Context(), "acme", "e1"); err != nil {
			t.Error(err)
		}
		kv.err = context.Canceled
		cancel()
		unknown := 0
		for range cap(results) {
			err := <-results
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, ErrOutcomeUnknown) {
				unknown++
			}
		}
		if unknown != 1 || kv.puts != 2 {
			t.Errorf("%d outcomes are unknown, %d changes were sent", unknown, kv.puts)
		}
	})
}

// calls are all calls of a store.
var calls = map[string]func(context.Context, *Store) error{
	"Apply":       func(ctx context.Context, st *Store) error { return st.Apply(ctx, change()) },
	"Resolve":     func(ctx context.Context, st *Store) error { _, err := st.Resolve(ctx, "acme", "e1"); return err },
	"List":        func(ctx context.Context, st *Store) error { _, err := st.List(ctx, "acme", "", 1); return err },
	"Sweep":       func(ctx context.Context, st *Store) error { _, err := st.Sweep(ctx, 1); return err },
	"Changes":     func(ctx context.Context, st *Store) error { _, err := st.Changes(ctx, ""); return err },
	"ListClients": func(ctx context.Context, st *Store) error { _, err := st.ListClients(ctx, "", 1); return err },
	"Erase":       func(ctx context.Context, st *Store) error { return st.Erase(ctx, "acme") },
	"Healthy":     func(ctx context.Context, st *Store) error { return st.Healthy(ctx) },
}

func TestUnusable(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls {
		st, kv, _ := newFakeStore(t)
		if err := call(ended, st); !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s with a ctx that has ended: %v", name, err)
		}
		for range 2 {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := call(t.Context(), st); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
		if kv.puts != 0 {
			t.Errorf("%s: %d puts", name, kv.puts)
		}
	}
}

func TestInvalidSweep(t *testing.T) {
	st, _, _ := newFakeStore(t)
	if _, err := st.Sweep(t.Context(), 0); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("a sweep without a limit: %v", err)
	}
}

// TestReadRetries: a read is retried if a member is unavailable, but not if it rejects the
// request.
func TestReadRetries(t *testing.T) {
	st, kv, _ := newFakeStore(t)
	kv.err = status.Error(codes.Unavailable, "the connection is closing")
	tried := 0
	st.client.KV = &counting{kv, func() {
		if tried++; tried == 3 {
			kv.err = nil
		}
	}}
	if _, err := st.Resolve(t.Context(), "acme", "e1"); err != nil || tried != 3 {
		t.Errorf("tried %d times: %v", tried, err)
	}
	kv.err = rpctypes.ErrPermissionDenied
	if _, err := st.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, rpctypes.ErrPermissionDenied) || tried != 4 {
		t.Errorf("tried %d times: %v", tried, err)
	}
	kv.err = status.Error(codes.Unavailable, "the connection is closing")
	if _, err := st.Resolve(t.Context(), "acme", "e1"); err == nil || tried != 4+maxReads {
		t.Errorf("tried %d times: %v", tried, err)
	}
}

// counting calls count before each transaction.
type counting struct {
	*fakeKV
	count func()
}

func (c *counting) Txn(ctx context.Context) clientv3.Txn {
	c.count()
	return c.fakeKV.Txn(ctx)
}
