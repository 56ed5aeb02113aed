package etcdstore

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

var errFake = errors.New("broken")

// fakeKV is an empty cluster at a revision.
type fakeKV struct {
	clientv3.KV
	cluster  uint64
	revision int64
	err      error
	puts     int
	reads    int
	fails    int                                   // the number of the read that fails with errFake
	hold     func(ctx context.Context, key string) // called by each put, if not nil
}

func (f *fakeKV) Put(ctx context.Context, key, _ string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	f.puts++
	if f.hold != nil {
		f.hold(ctx, key)
	}
	return &clientv3.PutResponse{}, f.err
}

func (f *fakeKV) Txn(context.Context) clientv3.Txn { return &fakeTxn{kv: f} }

type fakeTxn struct {
	clientv3.Txn
	kv   *fakeKV
	gets int
}

func (f *fakeTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	f.gets = len(ops)
	f.kv.reads++
	return f
}

func (f *fakeTxn) Commit() (*clientv3.TxnResponse, error) {
	response := &clientv3.TxnResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: f.kv.cluster, Revision: f.kv.revision}}
	for range f.gets {
		response.Responses = append(response.Responses, &etcdserverpb.ResponseOp{
			Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: &etcdserverpb.RangeResponse{}},
		})
	}
	if f.kv.fails > 0 && f.kv.reads == f.kv.fails {
		return response, errFake
	}
	return response, f.kv.err
}

// fakeWatcher starts watches whose responses come from the test.
type fakeWatcher struct {
	clientv3.Watcher
	started chan *fakeWatch
	asked   chan struct{}
	late    chan clientv3.WatchResponse // sent after the end of a watch, before its channel is closed
}

type fakeWatch struct {
	stream    []string // the metadata that selects the stream
	from      int64
	responses chan clientv3.WatchResponse
}

func newFakeWatcher() *fakeWatcher {
	return &fakeWatcher{
		started: make(chan *fakeWatch, 100),
		asked:   make(chan struct{}, 10_000),
		late:    make(chan clientv3.WatchResponse, 1),
	}
}

func (f *fakeWatcher) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, options...)
	header, _ := metadata.FromOutgoingContext(ctx)
	w := &fakeWatch{stream: header["webhookcfg-watch"], from: op.Rev(), responses: make(chan clientv3.WatchResponse)}
	responses := make(chan clientv3.WatchResponse)
	go func() {
		defer close(responses)
		for {
			select {
			case response := <-w.responses:
				select {
				case responses <- response:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				select {
				case response := <-f.late:
					responses <- response
				default:
				}
				return
			}
		}
	}()
	f.started <- w
	return responses
}

func (f *fakeWatcher) RequestProgress(context.Context) error {
	f.asked <- struct{}{}
	return nil
}

// event is a response with a change of one client. Its header has a later revision, as when a
// watch catches up.
func event(revision int64, client string) clientv3.WatchResponse {
	kv := &mvccpb.KeyValue{Key: []byte(keys(defaultPrefix).base(client)), ModRevision: revision}
	return clientv3.WatchResponse{
		Header: &etcdserverpb.ResponseHeader{Revision: revision + 100},
		Events: []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: kv}},
	}
}

func progress(revision int64) clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}}
}

func compacted(revision int64) clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{}, CompactRevision: revision, Canceled: true}
}

// newFakeStore returns a store on a cluster at revision 10.
func newFakeStore(t *testing.T) (*Store, *fakeKV, *fakeWatcher) {
	t.Helper()
	kv, watcher := &fakeKV{cluster: 1, revision: 10}, newFakeWatcher()
	st, err := New(&clientv3.Client{KV: kv, Watcher: watcher}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st, kv, watcher
}
