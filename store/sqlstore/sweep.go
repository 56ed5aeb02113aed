package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/rounds"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Limits of a sweep: how many rows a transaction deletes, so that it doesn't block others for
// long, and how many clients a query reads.
const (
	sweepRows    = 500
	sweepClients = 100
)

// SweepEvery calls [Store.Sweep] at an interval until ctx ends. Run it in a goroutine, with
// an interval of minutes, in any number of processes. It panics if the interval isn't
// positive.
//
// It starts after a random part of the interval, so that replicas that start together take
// turns. Errors are logged at level Warn, and the next round tries again.
//
// A call has no limit of rows, but ends after an interval at the latest. The next one
// continues there, so a client whose row stays locked doesn't hold up the others.
func (s *Store) SweepEvery(ctx context.Context, interval time.Duration) {
	if interval <= 0 {
		panic("sqlstore: interval of SweepEvery is not positive")
	}
	rounds.Run(ctx, interval, func(bounded context.Context) {
		if _, err := s.Sweep(bounded, math.MaxInt); err != nil && ctx.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "sqlstore: sweep failed", slog.Any("error", redact.PrintableError(err)))
		}
	})
}

// Sweep deletes up to limit rows that are no longer needed, in small transactions, and
// returns how many. These are:
//
//   - overrides that a change of all entities has dropped. They have no effect and only take
//     space: about a hundred bytes each, plus the names and the URL.
//   - deliveries without an attempt in the last 90 days. If the webhook was stopped, the next
//     message is sent again. If the receiver responds with 410, the webhook is stopped again.
//   - the rows of clients that have had nothing set for an hour, with their deliveries.
//
// You can call it at any time and in several processes. [Store.SweepEvery] does so regularly.
// Otherwise, call it every few minutes, and again at once if it returned limit. A call that
// finds nothing reads one row for each client.
//
// A call continues after the client where the previous call of this Store reached its limit
// or failed. So each client has its turn, even if another leaves many rows behind.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if limit is below 1. The number is valid
// even if there is an error.
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
		s.lastSwept.Store(nil) // every client has had its turn
	}
	return removed, err
}

// sweepAfter sweeps the clients after the given one. A client that fails has had its turn.
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

// dirtyClient is a client that may have rows of generations below gen, or may have had
// nothing set for long.
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

// sweepClient deletes up to limit rows of one client. The client's own row is the last.
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

// sweepGenerations deletes up to limit rows of a client's earlier generations, and records it
// when there are no more.
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

// obsoleteRange is a range of rows of a client's oldest generation.
type obsoleteRange struct {
	purge  statement
	values values
}

// findObsolete returns a range of at most limit rows to delete, or nil if there are none.
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

// vacantKept is how long the row of a client with nothing set stays, by the server's clock.
// It's longer than up-to-date readers need to learn of its last change.
const vacantKept = time.Hour

// sweepVacant deletes the row of a client if it has neither a base nor overrides, and returns
// how many rows of clients it deleted. If there are overrides, it records that, and no sweep
// looks at the client again before its next unset.
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

// deliveryKept is how long a delivery stays after its latest attempt.
const deliveryKept = 90 * 24 * time.Hour

// expireDeliveries works in all dialects but MySQL. It compares the time twice, because a
// row can be saved after the sub-select has read it.
const expireDeliveries = `
DELETE FROM {delivery} WHERE latest < @before
AND (client, entity) IN (SELECT client, entity FROM {delivery} WHERE latest < @before ORDER BY latest LIMIT @limit)`

// sweepDeliveries deletes up to limit deliveries without an attempt for a long time.
func (s *Store) sweepDeliveries(ctx context.Context, limit int) (removed int, err error) {
	before := time.Now().Add(-deliveryKept).UnixMicro()
	for removed < limit {
		v := values{"before": before, "limit": min(limit-removed, sweepRows)}
		n, err := s.execute(ctx, s.queries.expireDeliveries, v)
		removed += int(n)
		if err != nil || n == 0 {
			return removed, err
		}
	}
	return removed, nil
}
