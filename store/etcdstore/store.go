package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

var (
	_ webhookcfg.Store  = (*Store)(nil)
	_ webhookcfg.Lister = (*Store)(nil)
	_ cache.Feed        = (*Store)(nil)
	_ cache.Waker       = (*Store)(nil)
)

// Options are the settings of a [Store]. Nil, like the zero value, is safe.
type Options struct {
	// Prefix is what all keys begin with; it ends in a slash. "" means "webhookcfg/".
	Prefix string
	// BarrierTimeout is how long [Store.Changes] waits at most, also where its ctx
	// would let it. Zero means 2 seconds.
	BarrierTimeout time.Duration
	// History is how many changes the store remembers for [Store.Changes], in memory.
	// Who asks so seldom that there were more in between, gets a Reset. Zero means
	// 65,536, which take some 10 MB.
	History int
}

const (
	defaultPrefix         = "webhookcfg/"
	defaultBarrierTimeout = 2 * time.Second
	defaultHistory        = 1 << 16
)

// withDefaults returns the options with nothing left open.
func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = new(Options)
	}
	all := Options{
		Prefix:         cmp.Or(o.Prefix, defaultPrefix),
		BarrierTimeout: cmp.Or(o.BarrierTimeout, defaultBarrierTimeout),
		History:        cmp.Or(o.History, defaultHistory),
	}
	switch {
	case !strings.HasSuffix(all.Prefix, "/"):
		return all, errors.New("etcdstore: the prefix does not end in a slash")
	case all.BarrierTimeout < 0:
		return all, errors.New("etcdstore: the timeout of the barrier is negative")
	case all.History < 0:
		return all, errors.New("etcdstore: the length of the history is negative")
	}
	return all, nil
}

// Store is a [webhookcfg.Store], [webhookcfg.Lister], [cache.Feed] and
// [cache.Waker] in an etcd cluster. It is safe for concurrent use, and any
// number of them may share the keys of one prefix.
type Store struct {
	client  *clientv3.Client
	keys    keys
	barrier time.Duration
	watch   *watch
	closed  context.Context
	close   context.CancelFunc

	mu    sync.Mutex
	sweep sweepCursor
}

// New returns a store on the cluster of the client, which stays the caller's: it
// is to be closed after the store. Its KV and Watcher may be wrapped, both or none, as
// package namespace of etcd does. Nil options are the zero options. New asks the
// cluster nothing, so that a service starts also where the cluster does not answer.
func New(client *clientv3.Client, options *Options) (*Store, error) {
	if client == nil || client.KV == nil || client.Watcher == nil {
		return nil, errors.New("etcdstore: no client")
	}
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	closed, cancel := context.WithCancel(context.Background())
	return &Store{
		client:  client,
		keys:    keys(o.Prefix),
		barrier: o.BarrierTimeout,
		watch:   newWatch(client, keys(o.Prefix), o),
		closed:  closed,
		close:   cancel,
	}, nil
}

// Close ends the watch, and with it every [Store.Wake]. It may be called more than
// once, and returns nil. The client is not closed.
func (s *Store) Close() error {
	s.close()
	s.watch.close()
	return nil
}

// usable returns why nothing can be asked, before anything is.
func (s *Store) usable(ctx context.Context) error {
	if s.closed.Err() != nil {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("etcdstore: %w", err)
	}
	return nil
}

// Apply implements [webhookcfg.Store]. Of the time of the change it keeps the
// whole seconds. If the answer of the cluster is lost, the error wraps
// [ErrOutcomeUnknown]; if it is any other, the change was not made.
func (s *Store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	key := s.keys.base(c.Client)
	if !c.Scope.IsAll() {
		key = s.keys.override(c.Client, c.Scope.Entity())
	}
	// The client sends a put once. Sent again after somebody else's, it would bring
	// back what that one replaced.
	if _, err := s.client.Put(ctx, key, value{c.URL, c.Time.Unix()}.encode()); err != nil {
		return changeError(err, c.URL)
	}
	return nil
}

// Resolve implements [webhookcfg.Store].
func (s *Store) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, fmt.Errorf("%w: resolve without a client or an entity", webhookcfg.ErrInvalidArgument)
	}
	if err := s.usable(ctx); err != nil {
		return webhookcfg.Webhook{}, err
	}
	got, err := s.read(ctx, clientv3.OpGet(s.keys.base(client)), clientv3.OpGet(s.keys.override(client, entity)))
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	b, err := newBase(got.ranges[0].Kvs)
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	for _, kv := range got.ranges[1].Kvs {
		hook, err := b.override(kv)
		if err != nil || hook.Source != webhookcfg.SourceNone {
			return hook, err
		}
	}
	return b.webhook(), nil
}

// snapshot is what several gets found at one revision.
type snapshot struct {
	revision int64
	cluster  uint64
	ranges   []*clientv3.GetResponse
}

// maxReads is how often a read is tried where a member went away, and readPause how long
// after the first time, doubled each time. The client itself tries gets again, but not
// transactions.
const (
	maxReads  = 5
	readPause = 25 * time.Millisecond
)

// read makes several gets in one transaction, which asks the majority.
func (s *Store) read(ctx context.Context, gets ...clientv3.Op) (snapshot, error) {
	for try := 1; ; try++ {
		response, err := s.client.Txn(ctx).Then(gets...).Commit()
		if err == nil {
			return newSnapshot(response), nil
		}
		if try == maxReads || codeOf(err) != codes.Unavailable || !sleep(ctx, readPause<<(try-1)) {
			return snapshot{}, fmt.Errorf("etcdstore: reading: %w", err)
		}
	}
}

func newSnapshot(response *clientv3.TxnResponse) snapshot {
	found := snapshot{revision: response.Header.GetRevision(), cluster: response.Header.GetClusterId()}
	for _, one := range response.Responses {
		found.ranges = append(found.ranges, (*clientv3.GetResponse)(one.GetResponseRange()))
	}
	return found
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
