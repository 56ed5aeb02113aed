package etcdstore

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
)

// Swept says what came of a [Store.Sweep].
type Swept struct {
	// Looked is how many keys were looked at.
	Looked int
	// Removed is how many of them were removed.
	Removed int
	// Done says that the last key of the store was among them.
	Done bool
}

// Sweep looks at the next limit keys and removes those that count for nothing: what
// a set-all or an unset-all dropped, and what was unset without a base. No
// [Store.Resolve] notices. It goes on where the last call on this Store ended, and
// after the last key begins anew; so a few keys each minute get round to all. The
// keys of bases are never removed. A feed names the clients of what was removed. A
// limit below 1 gives an error that wraps [webhookcfg.ErrInvalidArgument].
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

// sweepCursor is how far a sweep has come. Its zero value is the beginning.
type sweepCursor struct {
	last   string // the key that was looked at last
	client string // to whom it belongs
	base   base   // what was seen of that client's base
}

// sweepSome looks at the keys that one request returns.
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

// visit moves to the key and reports whether it counts for nothing. The base of
// a client comes before its overrides. It may be written anew meanwhile, but an
// override that was older than a base stays so. What follows a damaged base is
// kept, as the base then is not at the revision that a removal asks for.
func (s *Store) visit(at *sweepCursor, kv *mvccpb.KeyValue) bool {
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

// removal removes a key unless it was written since it was looked at, or the base,
// without which a key that says off counts for nothing, was.
func (s *Store) removal(at *sweepCursor, kv *mvccpb.KeyValue) clientv3.Op {
	key := string(kv.Key)
	unchanged := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)}
	if kv.ModRevision > at.base.revision {
		baseKey := s.keys.base(at.client)
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(baseKey), "=", at.base.revision))
	}
	return clientv3.OpTxn(unchanged, []clientv3.Op{clientv3.OpDelete(key)}, nil)
}

// batch is how many keys a transaction removes; members allow 128 parts by default.
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
