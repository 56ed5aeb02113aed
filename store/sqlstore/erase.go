package sqlstore

import (
	"context"
	"fmt"
	"math"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var _ admin.Eraser = (*Store)(nil)

// Erase implements [admin.Eraser]. It deletes, in small transactions, the overrides that a
// client left behind and the records of its deliveries. If something is set for the client,
// only overrides that no longer count are deleted.
//
// One row remains: it has the client's name, and readers learn from it that the client has
// nothing set. [Store.Sweep] deletes it once the client has been without a webhook for an hour.
// After that, a cursor or a version from before the client's last change gives a Reset. A
// client of the same name starts without a trace of the erased one. A record of a
// delivery that ends after Erase is saved again, and is deleted with the row.
//
// Erased bytes may stay in the files, logs, replicas and backups of the database, until it
// reuses the space or you remove them.
func (s *Store) Erase(ctx context.Context, client string) error {
	if client == "" {
		return fmt.Errorf("%w: erase without a client", webhookcfg.ErrInvalidArgument)
	}
	if err := checkNames(client); err != nil {
		return err
	}
	err := s.erase(ctx, []byte(client))
	return s.wrapError("erase", err, egress.URL{})
}

func (s *Store) erase(ctx context.Context, client []byte) error {
	generations, err := read(ctx, s, s.queries.generation, values{"client": client}, scanOne[int64])
	if err != nil {
		return err
	}
	for _, gen := range generations {
		if _, err := s.sweepGenerations(ctx, dirtyClient{id: client, gen: gen}, math.MaxInt); err != nil {
			return err
		}
	}
	for {
		v := values{"client": client, "skip": sweepRows - 1}
		bounds, err := read(ctx, s, s.queries.deliveryBound, v, scanOne[[]byte])
		if err != nil {
			return err
		}
		drop := s.queries.dropAllDeliveries
		if len(bounds) > 0 {
			drop, v["bound"] = s.queries.dropDeliveries, bounds[0]
		}
		n, err := s.write(ctx, drop, v)
		if err != nil || n < sweepRows {
			return err
		}
	}
}
