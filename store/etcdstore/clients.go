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

// clientCursor is the start of a cursor of ListClients. The name of a client follows it.
const clientCursor = "after "

// maxScanned is how many keys one request of ListClients reads.
const maxScanned = 1000

// ListClients implements [admin.ClientLister]. Clients come in the order of their escaped
// names. A request reads up to 1,000 keys without their values, so a page is short if its
// clients have many overrides. A client with nothing set stays in the list until you erase
// it.
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
			page.Next = clientCursor + last // skip the other keys of this client
			return page, nil
		}
	}
}
