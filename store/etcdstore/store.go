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

	"example.com/go-webhookcfg/internal/healthcheck"
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

// Options are the settings of a [Store], all optional.
type Options struct {
	// Prefix starts all keys, and must end in a slash. The default is "webhookcfg/".
	Prefix string
	// Logger gets the errors of [Store.SweepEvery] at level Warn. By default, nothing is
	// logged.
	Logger *slog.Logger
}

const defaultPrefix = "webhookcfg/"

// withDefaults checks the options and fills in defaults.
func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = new(Options)
	}
	all := Options{Prefix: cmp.Or(o.Prefix, defaultPrefix), Logger: o.Logger}
	if all.Logger == nil {
		all.Logger = slog.New(slog.DiscardHandler)
	}
	if !strings.HasSuffix(all.Prefix, "/") {
		return all, errors.New("etcdstore: Options.Prefix must end in a slash")
	}
	return all, nil
}

// Store is a [webhookcfg.Store] in an etcd cluster. It's also a [webhookcfg.Lister], a
// [cache.Feed] and a [cache.Notifier]. It is safe for concurrent use. Any number of stores
// can share the keys of a prefix.
//
// Set-all only writes the key of the base, so it costs no more than a set. An override counts
// if its revision is later than the base's. Unset-all writes a base without a URL. No change
// reads before it writes.
//
// A majority confirms every read too. The store doesn't use etcd's serializable reads, which
// can be stale.
type Store struct {
	client *clientv3.Client
	keys   keys
	watch  *watch
	logger *slog.Logger
	health healthcheck.Check
	closed context.Context
	close  context.CancelFunc
	// changing lets one change of each client through at a time. Otherwise, the requests of
	// other clients would wait in the cluster behind all changes that one client makes at
	// once.
	changing keylock.Locks

	mu    sync.Mutex
	sweep sweepCursor
}

// New returns a store on the client's cluster. It does no I/O, so your service can start
// while the cluster is down. You can pass nil options. Close the store when you're done, and
// then the client.
//
// If you wrap the client's KV or its Watcher, wrap both, as etcd's package namespace does.
// New returns an error if the client is incomplete or an option is invalid.
func New(client *clientv3.Client, options *Options) (*Store, error) {
	if client == nil || client.KV == nil || client.Watcher == nil {
		return nil, errors.New("etcdstore: no client: pass one from clientv3.New")
	}
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	closed, cancel := context.WithCancel(context.Background())
	return &Store{
		client: client,
		keys:   keys(o.Prefix),
		watch:  newWatch(client, keys(o.Prefix)),
		logger: o.Logger,
		closed: closed,
		close:  cancel,
	}, nil
}

// Close ends the watch and closes the channels of [Store.Notify]. You can call it again. It
// always returns nil, and doesn't close the client.
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

// Apply implements [webhookcfg.Store]. It sends each client's changes one at a time, in the
// order of the calls, so a busy client doesn't delay the others.
//
// If the response was lost, or a member is out of space, the error wraps [ErrOutcomeUnknown].
// After any other error, the change was not made.
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
	// The client doesn't retry a put. A retry could come after another process's put, and
	// would restore the old value.
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

// Limits for reads while members are down. maxReads is how often we try, and readPause is the
// first pause, which doubles each time. The client itself only retries gets, but not
// transactions.
const (
	maxReads  = 5
	readPause = 25 * time.Millisecond
)

// read executes several gets in one transaction, which a majority confirms.
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
