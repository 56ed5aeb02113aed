package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var _ admin.ClientLister = (*Store)(nil)

// maxClients is how many clients one query reads at most.
const maxClients = 4096

// clientCursor is the start of a cursor of ListClients. The name of a client follows it.
const clientCursor = "after "

// ListClients implements [admin.ClientLister]. Clients come in the byte order of their names.
// A page can be short, because it leaves out clients with nothing set. A call is one query,
// which reads at most 4,096 clients.
func (s *Store) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	after, known := strings.CutPrefix(cursor, clientCursor)
	if limit < 1 || known != (after != "") {
		return admin.ClientPage{}, fmt.Errorf("%w: list of clients without a limit, or after an unknown cursor", webhookcfg.ErrInvalidArgument)
	}
	limit = min(limit, maxClients)
	rows, err := read(ctx, s, s.queries.listClients, values{"after": []byte(after), "limit": limit}, scanClient)
	if err != nil {
		return admin.ClientPage{}, s.wrapError("list clients", err, egress.URL{})
	}
	var page admin.ClientPage
	for _, row := range rows {
		if row.hasWebhook {
			page.Clients = append(page.Clients, string(row.id))
		}
	}
	if len(rows) == limit && len(rows[limit-1].id) > 0 {
		page.Next = clientCursor + string(rows[limit-1].id)
	}
	return page, nil
}

// clientRow is a client. If there are no clients, the only row has no id.
type clientRow struct {
	id         []byte
	hasWebhook bool
}

func scanClient(rows *sql.Rows) (c clientRow, err error) {
	var hasWebhook sql.NullBool
	err = scanRow(rows, &c.id, &hasWebhook)
	c.hasWebhook = hasWebhook.Bool && len(c.id) > 0
	return c, err
}
