package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/rounds"
	"example.com/go-webhookcfg/webhookcfg"
)

// Swept is the result of a [Store.Sweep].
type Swept struct {
	// Looked is how many keys the sweep read.
	Looked int
	// Removed is how many keys it deleted.
	Removed int
	// Done is true once the last key of the store was read.
	Done bool
}

// Sweep reads the next limit keys and deletes those that no longer count: overrides that a
// set-all or an unset-all dropped, and entities that were unset without a base. It changes no
// result of [Store.Resolve], and never deletes the key of a base. A feed reports the clients
// of deleted keys as changed.
//
// A call continues where the previous call on this Store ended, and starts again after the
// last key. So if you call it regularly with a small limit, it reaches every key sooner or
// later.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if limit is below 1.
func (s *Store) Sweep(ctx context.Context, limit int) (Swept, error) {
	if limit < 1 {
		return Swept{}, fmt.Errorf("%w: sweep without a limit", webhookcfg.ErrInvalidArgument)
	}
	if err := s.usable(ctx); err != nil {
		return Swept{}, err
	}
	s.mu.Lock()
	at := s.sweep
	s.mu.Unlock()
	var sum Swept
	for sum.Looked < limit && !sum.Done {
		done, err := s.sweepSome(ctx, &at, min(limit-sum.Looked, maxKeys))
		sum.Looked += done.Looked
		sum.Removed += done.Removed
		sum.Done = done.Done
		if err != nil {
			return sum, err
		}
		s.mu.Lock()
		s.sweep = at
		s.mu.Unlock()
	}
	return sum, nil
}

// SweepEvery sweeps all keys at an interval until ctx ends. Run it in a goroutine, in one
// process or several. A sweep reads every key with its value, so choose an interval of an
// hour rather than a minute. SweepEvery panics if the interval isn't positive.
//
// It starts after a random part of the interval, so that replicas that start together take
// turns. A sweep ends after an interval at the latest, and the next one continues there.
// Errors are logged at level Warn.
func (s *Store) SweepEvery(ctx context.Context, interval time.Duration) {
	if interval <= 0 {
		panic("etcdstore: interval of SweepEvery is not positive")
	}
	rounds.Run(ctx, interval, func(bounded context.Context) {
		if _, err := s.Sweep(bounded, math.MaxInt); err != nil && ctx.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "etcdstore: sweep failed", slog.Any("error", redact.PrintableError(err)))
		}
	})
}

// sweepCursor is the position of a sweep. Its zero value is the start.
type sweepCursor struct {
	last   string // the key read last
	client string // its client
	base   base   // the client's base, if it was read
}

// sweepSome sweeps the keys that one request returns.
func (s *Store) sweepSome(ctx context.Context, at *sweepCursor, limit int) (Swept, error) {
	from := string(s.keys)
	if at.last != "" {
		from = at.last + "\x00"
	}
	got, err := s.read(ctx, clientv3.OpGet(from,
		clientv3.WithRange(clientv3.GetPrefixRangeEnd(string(s.keys))), clientv3.WithLimit(int64(limit))))
	if err != nil {
		return Swept{}, err
	}
	var removals []clientv3.Op
	found := got.ranges[0]
	for _, kv := range found.Kvs {
		if s.visit(at, kv) {
			removals = append(removals, s.removal(at, kv))
		}
	}
	done := Swept{Looked: len(found.Kvs), Done: !found.More}
	if done.Done {
		*at = sweepCursor{}
	}
	done.Removed, err = s.remove(ctx, removals)
	return done, err
}

// visit moves the cursor to a key and reports whether it's obsolete. A client's base comes
// before its overrides. The base may be written again meanwhile, but an override that is
// older than the base stays so. Overrides after a damaged base are kept: the cursor then has no
// base, and their removal fails because there is one.
func (s *Store) visit(at *sweepCursor, kv *mvccpb.KeyValue) (obsolete bool) {
	at.last = string(kv.Key)
	client, entity, ok := s.keys.parse(kv.Key)
	if !ok {
		return false
	}
	if client != at.client {
		at.client, at.base = client, base{}
	}
	if entity == "" {
		if b, err := newBase([]*mvccpb.KeyValue{kv}); err == nil {
			at.base = b
		}
		return false
	}
	hook, err := at.base.override(kv)
	return err == nil && hook.Source == webhookcfg.SourceNone
}

// removal returns the operation that deletes a key, unless the key was written since it was
// read. For an override that is off, the base must be unchanged too, because it's only
// obsolete without a base.
func (s *Store) removal(at *sweepCursor, kv *mvccpb.KeyValue) clientv3.Op {
	key := string(kv.Key)
	unchanged := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)}
	if kv.ModRevision > at.base.revision {
		baseKey := s.keys.base(at.client)
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(baseKey), "=", at.base.revision))
	}
	return clientv3.OpTxn(unchanged, []clientv3.Op{clientv3.OpDelete(key)}, nil)
}

// batch is how many keys one transaction deletes. By default, members allow 128 operations.
const batch = 64

func (s *Store) remove(ctx context.Context, removals []clientv3.Op) (removed int, err error) {
	for len(removals) > 0 {
		count := min(len(removals), batch)
		response, err := s.client.Txn(ctx).Then(removals[:count]...).Commit()
		if err != nil {
			return removed, fmt.Errorf("etcdstore: sweeping: %w", err)
		}
		for _, one := range response.Responses {
			if one.GetResponseTxn().GetSucceeded() {
				removed++
			}
		}
		removals = removals[count:]
	}
	return removed, nil
}
