package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"example.com/go-webhookcfg/internal/rounds"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Limits of a sweep: the rows deleted in one transaction, so that no transaction blocks
// others for long, and the clients read by one query.
const (
	sweepRows    = 500
	sweepClients = 100
)

// SweepEvery calls [Store.Sweep] at an interval until ctx ends, each time without a limit but
// for at most another interval, after which the next call goes on: one client whose row is
// locked for ever holds up no other. It starts after a random part of the interval, so that
// replicas that start together take turns. Errors are logged at level Warn, and tried again after the interval. Run it in a
// goroutine of any number of processes, with an interval of minutes. It panics if the
// interval is not positive.
func (s *Store) SweepEvery(ctx context.Context, interval time.Duration) {
	if interval <= 0 {
		panic("sqlstore: interval of SweepEvery is not positive")
	}
	rounds.Run(ctx, interval, func(bounded context.Context) {
		if _, err := s.Sweep(bounded, math.MaxInt); err != nil && ctx.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "sqlstore: sweep failed", slog.Any("error", err))
		}
	})
}

// Sweep deletes up to limit obsolete rows, in small transactions, and returns their number:
// overrides that changes of all entities have left behind, which cost only space,
// deliveries without an attempt in the last 90 days, and the rows of clients that have had
// nothing set for more than an hour, with their deliveries. If such a delivery was a stop, the next
// attempt finds it out again. Sweep may run at any time, concurrently with all other methods
// and in several processes. [Store.SweepEvery] calls it regularly; otherwise call it every
// few minutes, and again immediately if it returned limit. A call that finds nothing reads
// one row for each client.
//
// A call starts with the client after the one at which the previous call of this Store
// reached its limit or failed, so that every client has its turn, however many rows another
// leaves behind.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if limit is below 1. The number is
// valid even if the error is not nil.
func (s *Store) Sweep(ctx context.Context, limit int) (removed int, err error) {
	if limit < 1 {
		return 0, fmt.Errorf("%w: sweep without a limit", webhookcfg.ErrInvalidArgument)
	}
	if err := s.ready(ctx); err != nil {
		return 0, s.wrapError("sweep", err, egress.URL{})
	}
	removed, err = s.sweepDeliveries(ctx, limit)
	if removed < limit {
		n, failed := s.sweepOverrides(ctx, limit-removed)
		removed += n
		err = errors.Join(err, failed)
	}
	return removed, s.wrapError("sweep", err, egress.URL{})
}

func (s *Store) sweepOverrides(ctx context.Context, limit int) (removed int, err error) {
	start := []byte{}
	if last := s.lastSwept.Load(); last != nil {
		start = last.id
	}
	removed, err = s.sweepAfter(ctx, start, limit)
	if err == nil && removed < limit && len(start) > 0 {
		var more int
		more, err = s.sweepAfter(ctx, []byte{}, limit-removed)
		removed += more
	}
	if err == nil && removed < limit {
		s.lastSwept.Store(nil) // every client had its turn
	}
	return removed, err
}

// sweepAfter sweeps the clients after one. A client that fails has had its turn.
func (s *Store) sweepAfter(ctx context.Context, after []byte, limit int) (removed int, err error) {
	for {
		clients, err := s.dirtyClients(ctx, after)
		if err != nil {
			return removed, err
		}
		for _, c := range clients {
			s.lastSwept.Store(&c)
			n, err := s.sweepClient(ctx, c, limit-removed)
			removed += n
			if err != nil || removed == limit {
				return removed, err
			}
		}
		if len(clients) < sweepClients {
			return removed, nil
		}
		after = clients[len(clients)-1].id
	}
}

// vacantKept is how long the row of a client with nothing set is kept, by the clock of the
// server: longer than readers that are up to date need for its last change.
const vacantKept = time.Hour

// dirtyClient may have rows of generations below gen, or may have been vacant for long.
type dirtyClient struct {
	id                      []byte
	gen, mark, change       int64
	hasObsolete, wasVacated bool
}

func (s *Store) dirtyClients(ctx context.Context, after []byte) ([]dirtyClient, error) {
	v := values{"after": after, "limit": sweepClients, "vacant": vacantKept.Microseconds()}
	return read(ctx, s, s.queries.dirty, v, func(rows *sql.Rows) (c dirtyClient, err error) {
		err = rows.Scan(&c.id, &c.gen, &c.mark, &c.change, &c.hasObsolete, &c.wasVacated)
		return c, err
	})
}

// sweepClient deletes up to limit rows of one client, its own last.
func (s *Store) sweepClient(ctx context.Context, c dirtyClient, limit int) (removed int, err error) {
	if c.hasObsolete {
		if removed, err = s.sweepGenerations(ctx, c, limit); err != nil || removed == limit {
			return removed, err
		}
	}
	if !c.wasVacated {
		return removed, nil
	}
	n, err := s.sweepVacant(ctx, c)
	return removed + n, err
}

// sweepGenerations deletes up to limit rows of one client's earlier generations, and records
// that none is left.
func (s *Store) sweepGenerations(ctx context.Context, c dirtyClient, limit int) (removed int, err error) {
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

// sweepVacant deletes the row of a client that has neither a base nor overrides, and returns how
// many rows of clients that were. If there are overrides, it records that, and no sweep looks at
// the client again before its next unset.
func (s *Store) sweepVacant(ctx context.Context, c dirtyClient) (removed int, err error) {
	v := values{"client": c.id, "mark": c.mark, "chg": c.change}
	overrides, err := read(ctx, s, s.queries.anyOverride, v, scanOne[int])
	if err != nil {
		return 0, err
	}
	if len(overrides) > 0 {
		_, err := s.write(ctx, []statement{s.queries.occupied}, v)
		return 0, err
	}
	n, err := s.write(ctx, s.queries.erase, v)
	return int(n), err
}

// obsoleteRange is a range of rows of a client's oldest generation.
type obsoleteRange struct {
	purge  statement
	values values
}

// findObsolete returns a range of at most limit rows to delete; nil if there are none.
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
