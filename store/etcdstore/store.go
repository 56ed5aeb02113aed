package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"example.com/go-webhookcfg/internal/checkup"
	"example.com/go-webhookcfg/internal/keylock"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Store  = (*Store)(nil)
	_ webhookcfg.Lister = (*Store)(nil)
	_ cache.Feed        = (*Store)(nil)
	_ cache.Notifier    = (*Store)(nil)
)

// Options are the optional settings of a [Store]. The zero value is valid.
type Options struct {
	// Prefix is the prefix of all keys; it must end in a slash. "" means "webhookcfg/".
	Prefix string
	// BarrierTimeout bounds how long [Store.Changes] waits, in addition to its ctx. Zero
	// means 2 seconds.
	BarrierTimeout time.Duration
	// History is the number of changes kept in memory for [Store.Changes]. A caller with
	// more changes between two calls receives a Reset. Zero means 65,536, which take about
	// 10 MB.
	History int
	// Logger receives the errors of [Store.SweepEvery] at level Warn. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultPrefix         = "webhookcfg/"
	defaultBarrierTimeout = 2 * time.Second
	defaultHistory        = 1 << 16
)

// withDefaults validates the options and fills in defaults.
func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = new(Options)
	}
	all := Options{
		Prefix:         cmp.Or(o.Prefix, defaultPrefix),
		BarrierTimeout: cmp.Or(o.BarrierTimeout, defaultBarrierTimeout),
		History:        cmp.Or(o.History, defaultHistory),
		Logger:         o.Logger,
	}
	if all.Logger == nil {
		all.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !strings.HasSuffix(all.Prefix, "/"):
		return all, errors.New("etcdstore: prefix without a final slash")
	case all.BarrierTimeout < 0:
		return all, errors.New("etcdstore: negative barrier timeout")
	case all.History < 0:
		return all, errors.New("etcdstore: negative length of the history")
	}
	return all, nil
}

// Store is a [webhookcfg.Store], [webhookcfg.Lister], [cache.Feed] and
// [cache.Notifier] in an etcd cluster. It is safe for concurrent use, and any
// number of them may share the keys of one prefix.
type Store struct {
	client  *clientv3.Client
	keys    keys
	barrier time.Duration
	watch   *watch
	logger  *slog.Logger
	health  checkup.Checkup
	closed  context.Context
	close   context.CancelFunc
	// changing admits one change of each client at a time. Without it, the requests of
	// another client would wait in the cluster for as many changes as one client makes
	// concurrently.
	changing keylock.Locks

	mu    sync.Mutex
	sweep sweepCursor
}

// New returns a store on the cluster of the client. The caller closes the client, after
// the store. The client's KV and Watcher may be wrapped, both or none, as etcd's package
// namespace does. Nil options are the zero [Options]. New does no I/O, so that a service
// starts even while the cluster is unavailable. It returns an error if the client is
// incomplete or an option is invalid.
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
		logger:  o.Logger,
		closed:  closed,
		close:   cancel,
	}, nil
}

// Close ends the watch and closes the channels of [Store.Notify]. It may be called more
// than once, and always returns nil. It does not close the client.
func (s *Store) Close() error {
	s.close()
	s.watch.close()
	return nil
}

// usable returns an error if the store is closed or ctx has ended.
func (s *Store) usable(ctx context.Context) error {
	if s.closed.Err() != nil {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("etcdstore: %w", err)
	}
	return nil
}

// Apply implements [webhookcfg.Store]. The changes of one client are sent in the order of the calls, one at a time.
//
// If the response of the cluster was lost, or a full member reports no space, the error
// wraps [ErrOutcomeUnknown]; with any other error the change was not applied.
func (s *Store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	unlock, err := s.changing.Lock(ctx, c.Client)
	if err != nil {
		return fmt.Errorf("etcdstore: %w", err)
	}
	defer unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	key := s.keys.base(c.Client)
	if !c.Scope.IsAll() {
		key = s.keys.override(c.Client, c.Scope.Entity())
	}
	// The client does not retry a put: after that of another process, a retry would
	// restore the replaced value.
	if _, err := s.client.Put(ctx, key, value{c.URL, c.Time.UnixMicro()}.encode()); err != nil {
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

// snapshot is the result of several gets at one revision.
type snapshot struct {
	revision int64
	cluster  uint64
	ranges   []*clientv3.GetResponse
}

// Limits of reads while members are unavailable: maxReads is the number of attempts,
// readPause the pause after the first, doubled after each other. The client itself retries
// gets, but not transactions.
const (
	maxReads  = 5
	readPause = 25 * time.Millisecond
)

// read executes several gets in one transaction, confirmed by a majority.
func (s *Store) read(ctx context.Context, gets ...clientv3.Op) (snapshot, error) {
	for attempt := 1; ; attempt++ {
		response, err := s.client.Txn(ctx).Then(gets...).Commit()
		if err == nil {
			return newSnapshot(response), nil
		}
		if attempt == maxReads || codeOf(err) != codes.Unavailable || !sleep(ctx, readPause<<(attempt-1)) {
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
