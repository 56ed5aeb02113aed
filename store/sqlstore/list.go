package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// List implements [webhookcfg.Lister], with one query, so that a page is of one
// moment.
func (s *Store) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list without a client or a limit", webhookcfg.ErrInvalidArgument)
	}
	if err := checkNames(client); err != nil {
		return webhookcfg.Page{}, err
	}
	limit = min(limit, math.MaxInt32-1) // one more is asked for
	rows, err := read(ctx, s, s.queries.list, values{
		"client": []byte(client), "after": []byte(after), "limit": int64(limit) + 1,
	}, scanListed)
	if err != nil {
		return webhookcfg.Page{}, wrap("list", err, egress.URL{})
	}
	return newPage(rows, limit), nil
}

// listed is a row of a list: the client's own, which comes first, or one of an
// entity.
type listed struct {
	isOverride  bool
	entity, url []byte
	since       int64
}

func scanListed(rows *sql.Rows) (l listed, err error) {
	err = rows.Scan(&l.isOverride, &l.entity, &l.url, &l.since)
	return l, err
}

func newPage(rows []listed, limit int) webhookcfg.Page {
	if len(rows) == 0 {
		return webhookcfg.Page{}
	}
	page := webhookcfg.Page{Base: baseWebhook(rows[0].url, rows[0].since)}
	for _, l := range rows[1:] {
		if len(page.Overrides) == limit {
			page.Next = page.Overrides[limit-1].Entity
			break
		}
		page.Overrides = append(page.Overrides, webhookcfg.Override{
			Entity:  string(l.entity),
			Webhook: overrideWebhook(l.url, l.since),
		})
	}
	return page
}
