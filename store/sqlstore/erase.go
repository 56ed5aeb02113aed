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

const (
	deliveryBound = `
SELECT entity FROM {delivery} WHERE client = @client ORDER BY entity LIMIT 1 OFFSET @skip`

	// dropDeliveries and dropAllDeliveries go between awaitOthers and ifVacant, in one
	// transaction. So they only delete the deliveries of a client with nothing set.
	dropDeliveries = `
DELETE FROM {delivery} WHERE client = @client AND entity <= @bound`
	dropAllDeliveries = `
DELETE FROM {delivery} WHERE client = @client`
	ifVacant = `
AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client AND length(url) > 0)
AND (SELECT entity FROM {override} WHERE client = @client AND gen = (SELECT gen FROM {client} WHERE id = @client) ORDER BY entity LIMIT 1) IS NULL`

	// eraseClient locks the row of a client and deletes it, unless the client was changed or
	// has a webhook. The statements after it in the transaction do nothing if the row is
	// still there.
	eraseClient = `
DELETE FROM {client} WHERE id = @client AND mark = @mark AND length(url) = 0
AND (SELECT entity FROM {override} WHERE client = @client ORDER BY gen, entity LIMIT 1) IS NULL`
	eraseDeliveries = `
DELETE FROM {delivery} WHERE client = @client AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client)`
)

// Erase implements [admin.Eraser]. In small transactions, it deletes the overrides that a
// client left behind and the records of its deliveries. If the client still has a webhook,
// Erase only deletes overrides that no longer count.
//
// One row with the client's name stays, so that readers learn that the client has nothing
// set. [Store.Sweep] deletes it once the client has had no webhook for an hour. After that, a
// cursor from before the client's last change gives a Reset, and a version from before it no
// longer matches. A new client with the same name starts without a trace of the erased one.
//
// If a delivery ends after Erase, its record is saved again, and deleted together with the
// row.
//
// Erased bytes may stay in the database's files, logs, replicas and backups until it reuses
// the space or you remove them. An SQLite file with secure_delete doesn't keep them. Its -wal
// file does until SQLite overwrites it, or removes it when the last process closes the database.
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
