package etcd_test

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// kv wraps a client's key-value API, so that a test can break the store on purpose.
type kv struct {
	clientv3.KV
	put func(ctx context.Context, key, value string) (*clientv3.PutResponse, error)
	// then changes the operations of a transaction once you've seen its response.
	then func(ops []clientv3.Op) []clientv3.Op
	seen func(response *clientv3.TxnResponse)
}

func (b *kv) Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if b.put != nil {
		return b.put(ctx, key, value)
	}
	return b.KV.Put(ctx, key, value, options...)
}

func (b *kv) Txn(ctx context.Context) clientv3.Txn { return &txn{b.KV.Txn(ctx), b} }

type txn struct {
	clientv3.Txn
	kv *kv
}

func (b *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	if b.kv.then != nil {
		ops = b.kv.then(ops)
	}
	return &txn{b.Txn.Then(ops...), b.kv}
}

func (b *txn) Commit() (*clientv3.TxnResponse, error) {
	response, err := b.Txn.Commit()
	if err == nil && b.kv.seen != nil {
		b.kv.seen(response)
	}
	return response, err
}

// serializable makes reads serializable, so a member can return stale data.
func serializable(c *clientv3.Client) {
	c.KV = &kv{KV: c.KV, then: func(ops []clientv3.Op) []clientv3.Op {
		for n := range ops {
			if ops[n].IsGet() {
				clientv3.WithSerializable()(&ops[n])
			}
		}
		return ops
	}}
}

// ignoresAge treats every override as newer than the base.
func ignoresAge(c *clientv3.Client) {
	c.KV = &kv{KV: c.KV, seen: func(response *clientv3.TxnResponse) {
		for _, found := range response.Responses {
			for _, kv := range found.GetResponseRange().GetKvs() {
				if strings.HasSuffix(string(kv.Key), "/") {
					kv.ModRevision = 0
				}
			}
		}
	}}
}

// deletesBases deletes the key of a base when it's unset.
func deletesBases(c *clientv3.Client) {
	inner := c.KV
	c.KV = &kv{KV: inner, put: func(ctx context.Context, key, value string) (*clientv3.PutResponse, error) {
		if strings.HasSuffix(key, "/") && strings.Count(value, " ") == 1 {
			_, err := inner.Delete(ctx, key)
			return nil, err
		}
		return inner.Put(ctx, key, value)
	}}
}

// retries sends a change again, as if the first response had been lost.
func retries(c *clientv3.Client) {
	inner := c.KV
	c.KV = &kv{KV: inner, put: func(ctx context.Context, key, value string) (*clientv3.PutResponse, error) {
		_, _ = inner.Put(ctx, key, value)
		time.Sleep(2 * time.Millisecond)
		return inner.Put(ctx, key, value)
	}}
}

// removesBlindly deletes keys without checking that they're still void.
func removesBlindly(c *clientv3.Client) {
	c.KV = &kv{KV: c.KV, then: func(ops []clientv3.Op) []clientv3.Op {
		for n := range ops {
			if ops[n].IsTxn() {
				_, then, _ := ops[n].Txn()
				ops[n] = clientv3.OpTxn(nil, then, nil)
			}
		}
		return ops
	}}
}

// noBarrier makes the feed return the events that it has, without waiting for the watch to
// catch up.
func noBarrier(c *clientv3.Client) {
	first := int64(0)
	c.KV = &kv{KV: c.KV, seen: func(response *clientv3.TxnResponse) {
		if first == 0 {
			first = response.Header.Revision
		}
		response.Header.Revision = first
	}}
}
