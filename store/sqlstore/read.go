package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// read executes a query and returns the result of scan for each row.
func read[T any](ctx context.Context, s *Store, q statement, v values, scan func(*sql.Rows) (T, error)) (all []T, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	err = s.retry(ctx, func() (outcome, error) {
		all, err = query(ctx, s.db, q, v, scan)
		return s.attempted(err)
	})
	return all, err
}

// querier is a database handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func query[T any](ctx context.Context, db querier, q statement, v values, scan func(*sql.Rows) (T, error)) ([]T, error) {
	rows, err := db.QueryContext(ctx, q.Text, q.Args(v)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// scanRow scans a row whose first column says whether the server is a standby.
func scanRow(rows *sql.Rows, columns ...any) error {
	var standby bool
	if err := rows.Scan(slices.Insert(columns, 0, any(&standby))...); err != nil {
		return err
	}
	if standby {
		return ErrStandby
	}
	return nil
}

// scanOne scans a row of one column.
func scanOne[T any](rows *sql.Rows) (one T, err error) {
	err = rows.Scan(&one)
	return one, err
}

// Resolve implements [webhookcfg.Store], with one query.
func (s *Store) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, fmt.Errorf("%w: resolve without a client or an entity", webhookcfg.ErrInvalidArgument)
	}
	if err := checkNames(client, entity); err != nil {
		return webhookcfg.Webhook{}, err
	}
	found, err := read(ctx, s, s.queries.resolve,
		values{"client": []byte(client), "entity": []byte(entity)}, scanWebhook)
	if err != nil || len(found) == 0 {
		return webhookcfg.Webhook{}, s.wrapError("resolve", err, egress.URL{})
	}
	return found[0], nil
}

// scanWebhook scans the row of a client, with its base and maybe an override. The time of the
// override is NULL if there is none. Don't go by its URL: some drivers don't tell an empty
// URL from NULL. An unknown client has no base.
func scanWebhook(rows *sql.Rows) (webhookcfg.Webhook, error) {
	var (
		base, override         []byte
		since, overriddenSince sql.NullInt64
	)
	if err := scanRow(rows, &base, &since, &override, &overriddenSince); err != nil {
		return webhookcfg.Webhook{}, err
	}
	if overriddenSince.Valid {
		return overrideWebhook(override, overriddenSince.Int64), nil
	}
	return baseWebhook(base, since.Int64), nil
}

// List implements [webhookcfg.Lister]. A page comes from one query, so it shows the client at
// one moment.
func (s *Store) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list without a client, or with a limit below 1", webhookcfg.ErrInvalidArgument)
	}
	if err := checkNames(client); err != nil {
		return webhookcfg.Page{}, err
	}
	limit = min(limit, math.MaxInt32-1) // the query requests one more
	rows, err := read(ctx, s, s.queries.list, values{
		"client": []byte(client), "after": []byte(after), "limit": int64(limit) + 1,
	}, scanListRow)
	if err != nil {
		return webhookcfg.Page{}, s.wrapError("list", err, egress.URL{})
	}
	return newPage(rows, limit), nil
}

// listRow is a row of a list: first the row of the client, then its overrides.
type listRow struct {
	isOverride  bool
	entity, url []byte
	since       int64
}

func scanListRow(rows *sql.Rows) (l listRow, err error) {
	var since sql.NullInt64
	err = scanRow(rows, &l.isOverride, &l.entity, &l.url, &since)
	l.since = since.Int64
	return l, err
}

func newPage(rows []listRow, limit int) webhookcfg.Page {
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

// baseWebhook returns the base in the row of a client.
func baseWebhook(url []byte, since int64) webhookcfg.Webhook {
	if len(url) == 0 {
		return webhookcfg.Webhook{}
	}
	return newWebhook(url, webhookcfg.SourceBase, since)
}

// overrideWebhook returns the override in the row of an entity. Without a URL, it's off.
func overrideWebhook(url []byte, since int64) webhookcfg.Webhook {
	if len(url) == 0 {
		return newWebhook(nil, webhookcfg.SourceOff, since)
	}
	return newWebhook(url, webhookcfg.SourceOverride, since)
}

func newWebhook(url []byte, source webhookcfg.Source, since int64) webhookcfg.Webhook {
	return webhookcfg.Webhook{
		URL:    egress.NewURL(string(url)),
		Source: source,
		Since:  unixTime(since),
	}
}

// unixTime converts the time in a column. The zero Time stays the zero Time.
func unixTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
