package etcdstore

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Healthy returns nil if a majority of the members accepts this store's changes. It sends a
// transaction that would put a key, but only on a condition that is never true. So it changes
// nothing, but fails where a change would fail, for example at the quota of the members or
// the rights of the user.
//
// You can call Healthy as often as you like. It asks the cluster at most once a second, with
// one request, for at most five seconds. Calls in between get the same result.
func (s *Store) Healthy(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.health.Do(ctx, func(ctx context.Context) error {
		key := string(s.keys)
		_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "<", 0)).
			Then(clientv3.OpPut(key, "")).Commit()
		if err != nil {
			return fmt.Errorf("etcdstore: changes fail: %w", err)
		}
		return nil
	})
}
