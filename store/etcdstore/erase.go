package etcdstore

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

var _ admin.Eraser = (*Store)(nil)

// Erase implements [admin.Eraser]. It deletes all keys of a client with nothing set: first
// the overrides, then the base, unless the client was changed meanwhile. A new client with
// the same name starts without a trace of the erased one, because etcd never uses a revision
// again. If you get an error, call Erase again.
//
// Etcd keeps earlier revisions, with the name and the URLs, until it compacts them. Then the
// bytes may stay in the files of the members until you defragment them, and in your
// snapshots.
func (s *Store) Erase(ctx context.Context, client string) error {
	if client == "" {
		return fmt.Errorf("%w: erase without a client", webhookcfg.ErrInvalidArgument)
	}
	unlock, err := s.changing.Lock(ctx, client)
	if err != nil {
		return fmt.Errorf("etcdstore: %w", err)
	}
	defer unlock()
	for {
		if err := s.usable(ctx); err != nil {
			return err
		}
		if ended, err := s.eraseOnce(ctx, client); err != nil || ended {
			return err
		}
	}
}

// eraseOnce deletes the keys of a client. It gives up, with ended false, if another process
// changed the client meanwhile.
func (s *Store) eraseOnce(ctx context.Context, client string) (ended bool, err error) {
	got, err := s.read(ctx, clientv3.OpGet(s.keys.base(client)))
	if err != nil {
		return false, err
	}
	b, err := newBase(got.ranges[0].Kvs)
	if err != nil || !b.url.IsZero() {
		return true, err
	}
	at := &sweepCursor{client: client, base: b}
	for from, more := s.keys.after(client, ""), true; more; {
		got, err := s.read(ctx, clientv3.OpGet(from, clientv3.WithRange(s.keys.end(client)), clientv3.WithLimit(maxKeys)))
		if err != nil {
			return false, err
		}
		var removals []clientv3.Op
		for _, kv := range got.ranges[0].Kvs {
			hook, err := b.override(kv)
			if err != nil || hook.Source != webhookcfg.SourceNone {
				return true, err
			}
			removals = append(removals, s.removal(at, kv))
			from = string(kv.Key) + "\x00"
		}
		if _, err := s.remove(ctx, removals); err != nil {
			return false, err
		}
		more = got.ranges[0].More
	}
	return s.removeBase(ctx, client, b)
}

// removeBase deletes the key of a base. It does so only if no other key depends on its
// revision.
func (s *Store) removeBase(ctx context.Context, client string, b base) (done bool, err error) {
	response, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.keys.base(client)), "=", b.revision),
		clientv3.Compare(clientv3.CreateRevision(s.keys.after(client, "")), "=", 0).WithRange(s.keys.end(client)),
	).Then(clientv3.OpDelete(s.keys.base(client))).Commit()
	if err != nil {
		return false, fmt.Errorf("etcdstore: erasing: %w", err)
	}
	return response.Succeeded, nil
}
