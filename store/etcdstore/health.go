package etcdstore

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Healthy returns nil if a majority of the members accepts changes of this store. It sends a
// transaction that would put a key if an impossible condition held. So the transaction passes
// through everything that a change does, the quota of the members and the rights of the
// user included, and changes nothing.
//
// You may call Healthy as often as you like. The cluster is asked at most once a second, by one
// request, for at most five seconds; calls in between get the same result.
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
