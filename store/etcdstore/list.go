package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	// maxKeys is how many keys one request reads at most.
	maxKeys = 512
	// maxSkipped is how many obsolete keys a page skips before it ends.
	maxSkipped = 4096
)

// List implements [webhookcfg.Lister]. A page ends before its limit, and can be empty, after
// it has skipped 4,096 keys that no longer count and that [Store.Sweep] hasn't deleted yet.
// Next then continues after them. A page also ends early if it takes several requests and
// etcd compacts its revision between them.
func (s *Store) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list without a client, or with a limit below 1", webhookcfg.ErrInvalidArgument)
	}
	if err := s.usable(ctx); err != nil {
		return webhookcfg.Page{}, err
	}
	p := pager{store: s, client: client, last: after, skips: maxSkipped, limit: limit}
	if err := p.first(ctx); err != nil {
		return webhookcfg.Page{}, err
	}
	for p.more && !p.full() {
		if err := p.next(ctx); err != nil {
			return webhookcfg.Page{}, err
		}
	}
	return p.page, nil
}

// pager builds one page from the state at one revision.
type pager struct {
	store    *Store
	client   string
	revision int64
	base     base
	last     string // the entity read last
	skips    int    // how many more obsolete keys it can skip
	limit    int
	page     webhookcfg.Page
	more     bool // etcd has more keys after last
}

// first reads the base and the first overrides, and so sets the revision of the page.
func (p *pager) first(ctx context.Context) error {
	got, err := p.store.read(ctx, clientv3.OpGet(p.store.keys.base(p.client)), p.overrides())
	if err != nil {
		return err
	}
	p.revision = got.revision
	if p.base, err = newBase(got.ranges[0].Kvs); err != nil {
		return err
	}
	p.page.Base = p.base.webhook()
	return p.addAll(got.ranges[1])
}

// next reads the next overrides. If the revision was compacted, the page ends here.
func (p *pager) next(ctx context.Context) error {
	got, err := p.store.read(ctx, p.overrides())
	if errors.Is(err, rpctypes.ErrCompacted) {
		p.page.Next = p.last
		return nil
	}
	if err != nil {
		return err
	}
	return p.addAll(got.ranges[0])
}

// overrides returns the request for the keys after the last one, at the revision of the page.
// It asks for one key too many, to find out whether there's another page.
func (p *pager) overrides() clientv3.Op {
	keys := p.store.keys
	count := min(p.limit-len(p.page.Overrides), maxKeys-1) + 1
	if p.revision > 0 { // after the first request, there may be many obsolete keys
		count = maxKeys
	}
	return clientv3.OpGet(keys.after(p.client, p.last), clientv3.WithRange(keys.end(p.client)),
		clientv3.WithRev(p.revision), clientv3.WithLimit(int64(count)))
}

func (p *pager) addAll(got *clientv3.GetResponse) error {
	p.more = got.More
	for _, kv := range got.Kvs {
		if p.full() {
			return nil
		}
		if err := p.add(kv); err != nil {
			return err
		}
	}
	return nil
}

// add adds one key to the page, or skips it.
func (p *pager) add(kv *mvccpb.KeyValue) error {
	hook, err := p.base.override(kv)
	if err != nil {
		return err
	}
	entity := string(kv.Key[len(p.store.keys.base(p.client)):])
	switch {
	case hook.Source == webhookcfg.SourceNone:
		p.skips--
		if p.skips == 0 {
			p.page.Next = entity
		}
	case len(p.page.Overrides) == p.limit:
		p.page.Next = p.page.Overrides[p.limit-1].Entity
	default:
		p.page.Overrides = append(p.page.Overrides, webhookcfg.Override{Entity: entity, Webhook: hook})
	}
	p.last = entity
	return nil
}

// full reports whether the page has ended and there are more overrides.
func (p *pager) full() bool { return p.page.Next != "" }
