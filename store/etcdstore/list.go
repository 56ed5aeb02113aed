package etcdstore

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	// chunk is how many keys a request asks for at most.
	chunk = 512
	// stepped is how many keys that count for nothing a page steps over.
	stepped = 4096
)

// List implements [webhookcfg.Lister], but for what it has to step over: after
// 4,096 keys that count for nothing, because a set-all dropped them and no
// [Store.Sweep] has come by, the page ends before its limit, perhaps with nothing, and
// Next goes on behind them.
func (s *Store) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list without a client or a limit", webhookcfg.ErrInvalidArgument)
	}
	if err := s.usable(ctx); err != nil {
		return webhookcfg.Page{}, err
	}
	w := walk{store: s, client: client, last: after, left: stepped, limit: limit}
	if err := w.begin(ctx); err != nil {
		return webhookcfg.Page{}, err
	}
	for w.more && !w.full() {
		if err := w.next(ctx); err != nil {
			return webhookcfg.Page{}, err
		}
	}
	return w.page, nil
}

// walk makes one page, of the state at one revision.
type walk struct {
	store    *Store
	client   string
	revision int64
	base     base
	last     string // the entity that was looked at last
	left     int    // keys that may yet be stepped over
	limit    int
	page     webhookcfg.Page
	more     bool // etcd has more keys after last
}

// begin gets the base and the first overrides, which decides on the revision.
func (w *walk) begin(ctx context.Context) error {
	got, err := w.store.read(ctx, clientv3.OpGet(w.store.keys.base(w.client)), w.overrides())
	if err != nil {
		return err
	}
	w.revision = got.revision
	if w.base, err = newBase(got.ranges[0].Kvs); err != nil {
		return err
	}
	w.page.Base = w.base.webhook()
	return w.take(got.ranges[1])
}

func (w *walk) next(ctx context.Context) error {
	got, err := w.store.read(ctx, w.overrides())
	if err != nil {
		return err
	}
	return w.take(got.ranges[0])
}

// overrides asks for the keys after the last, at the revision of the page; one
// more than the page has room for, since that tells whether there is another page.
func (w *walk) overrides() clientv3.Op {
	keys := w.store.keys
	count := min(w.limit-len(w.page.Overrides), chunk-1) + 1
	if w.revision > 0 { // after the first, there may be many to step over
		count = chunk
	}
	return clientv3.OpGet(keys.after(w.client, w.last), clientv3.WithRange(keys.end(w.client)),
		clientv3.WithRev(w.revision), clientv3.WithLimit(int64(count)))
}

func (w *walk) take(got *clientv3.GetResponse) error {
	w.more = got.More
	for _, kv := range got.Kvs {
		if w.full() {
			return nil
		}
		if err := w.look(kv); err != nil {
			return err
		}
	}
	return nil
}

// look takes one key into the page, or steps over it.
func (w *walk) look(kv *mvccpb.KeyValue) error {
	hook, err := w.base.override(kv)
	if err != nil {
		return err
	}
	entity := string(kv.Key[len(w.store.keys.base(w.client)):])
	switch {
	case hook.Source == webhookcfg.SourceNone:
		w.left--
		if w.left == 0 {
			w.page.Next = entity
		}
	case len(w.page.Overrides) == w.limit:
		w.page.Next = w.page.Overrides[w.limit-1].Entity
	default:
		w.page.Overrides = append(w.page.Overrides, webhookcfg.Override{Entity: entity, Webhook: hook})
	}
	w.last = entity
	return nil
}

// full reports whether the page has ended before the overrides have.
func (w *walk) full() bool { return w.page.Next != "" }
