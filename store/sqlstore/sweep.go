package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// How many rows a transaction of the sweep removes at most, so that none keeps
// others waiting, and how many clients it asks for at once.
const (
	sweepRows    = 500
	sweepClients = 100
)

// Sweep removes up to limit of the rows that changes of all entities have left
// behind, in small transactions, and returns how many those were. They are of no
// effect, and cost nothing but the space. It may run at any time, beside all else
// and in several processes. A host calls it every now and then, again at once when
// it returned limit. A call that finds nothing has read one row for each client.
//
// A limit below 1 gives an error that wraps [webhookcfg.ErrInvalidArgument]. With
// an error too, what is counted was removed.
func (s *Store) Sweep(ctx context.Context, limit int) (removed int, err error) {
	if limit < 1 {
		return 0, fmt.Errorf("%w: sweep without a limit", webhookcfg.ErrInvalidArgument)
	}
	after := []byte{}
	for removed < limit {
		clients, err := s.dirtyClients(ctx, after)
		if err != nil {
			return removed, wrapError("sweep", err, egress.URL{})
		}
		for _, c := range clients {
			n, err := s.sweepClient(ctx, c, limit-removed)
			removed += n
			if err != nil {
				return removed, wrapError("sweep", err, egress.URL{})
			}
			if removed == limit {
				return removed, nil
			}
		}
		if len(clients) < sweepClients {
			break
		}
		after = clients[len(clients)-1].id
	}
	return removed, nil
}

// dirtyClient has rows of generations below gen.
type dirtyClient struct {
	id  []byte
	gen int64
}

func (s *Store) dirtyClients(ctx context.Context, after []byte) ([]dirtyClient, error) {
	return read(ctx, s, s.queries.dirty, values{"after": after, "limit": sweepClients},
		func(rows *sql.Rows) (c dirtyClient, err error) {
			err = rows.Scan(&c.id, &c.gen)
			return c, err
		})
}

// sweepClient removes up to limit rows of one client, and notes when none is left.
func (s *Store) sweepClient(ctx context.Context, c dirtyClient, limit int) (removed int, err error) {
	for removed < limit {
		obsolete, err := s.findObsolete(ctx, c, min(limit-removed, sweepRows))
		if err != nil {
			return removed, err
		}
		if obsolete == nil {
			_, err := s.write(ctx, []statement{s.queries.swept}, values{"client": c.id, "gen": c.gen})
			return removed, err
		}
		n, err := s.write(ctx, []statement{obsolete.purge}, obsolete.values)
		removed += int(n)
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// obsoleteRange is some rows of a client's oldest generation.
type obsoleteRange struct {
	purge  statement
	values values
}

// findObsolete finds a range of at most limit rows to remove; nil if there are none.
func (s *Store) findObsolete(ctx context.Context, c dirtyClient, limit int) (*obsoleteRange, error) {
	lowest, err := read(ctx, s, s.queries.lowest, values{"client": c.id, "gen": c.gen}, scanOne[sql.NullInt64])
	if err != nil || len(lowest) == 0 || !lowest[0].Valid {
		return nil, err
	}
	v := values{"client": c.id, "gen": lowest[0].Int64, "skip": limit - 1}
	bounds, err := read(ctx, s, s.queries.bound, v, scanOne[[]byte])
	if err != nil {
		return nil, err
	}
	if len(bounds) == 0 {
		return &obsoleteRange{s.queries.purgeAll, v}, nil
	}
	v["bound"] = bounds[0]
	return &obsoleteRange{s.queries.purge, v}, nil
}
