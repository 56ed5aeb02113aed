package etcdstore

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

var _ admin.ClientLister = (*Store)(nil)

// clientCursor starts the cursors of ListClients. The name of a client follows.
const clientCursor = "after "

// maxScanned is the number of keys in one request of ListClients.
const maxScanned = 1000

// ListClients implements [admin.ClientLister]. It lists clients in the order of their escaped
// names. It reads keys without values, up to 1,000 in a request, so a page of clients with many
// overrides is short, and a client whose webhooks were all unset is listed until it is erased.
func (s *Store) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	last, known := strings.CutPrefix(cursor, clientCursor)
	if limit < 1 || known != (last != "") || !known && cursor != "" {
		return admin.ClientPage{}, fmt.Errorf("%w: list of clients without a limit, or after an unknown cursor", webhookcfg.ErrInvalidArgument)
	}
	if err := s.usable(ctx); err != nil {
		return admin.ClientPage{}, err
	}
	from := string(s.keys)
	if last != "" {
		from = s.keys.end(last)
	}
	var page admin.ClientPage
	for {
		got, err := s.read(ctx, clientv3.OpGet(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(string(s.keys))),
			clientv3.WithKeysOnly(), clientv3.WithLimit(int64(min(limit, maxScanned)))))
		if err != nil {
			return admin.ClientPage{}, err
		}
		found := got.ranges[0]
		for _, kv := range found.Kvs {
			if client, _, ok := s.keys.parse(kv.Key); ok && client != last {
				page.Clients = append(page.Clients, client)
				last = client
			}
			from = string(kv.Key) + "\x00"
		}
		switch {
		case !found.More:
			return page, nil
		case len(page.Clients) > 0:
			page.Next = clientCursor + last // the rest of this client's keys is skipped
			return page, nil
		}
	}
}
