package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var _ deliver.HealthStore = (*Store)(nil)

// The values of the column state.
const (
	stateActive = iota
	stateStopped
)

// deliveryReasons are the reasons that a record can have: those with a word that clients can
// see. The tables store their indexes, so don't reorder them.
var deliveryReasons = []deliver.Reason{
	0: "",
	1: deliver.ReasonUnreachable,
	2: deliver.ReasonRedirect,
	3: deliver.ReasonThrottled,
	4: deliver.ReasonStatus,
	5: deliver.ReasonGone,
	6: deliver.ReasonPolicy,
	7: deliver.ReasonExpired,
}

// Statements about deliveries. Each is its own transaction, so a process that disappears
// can't leave a row locked. None touches a row that a change waits for.
const (
	loadDelivery = `
SELECT {standby}, d.since, d.state, d.reason, d.last_success, d.last_failure, d.first_failure
FROM (SELECT 1) p LEFT JOIN {delivery} d ON d.client = @client AND d.entity = @entity`

	// saveDelivery goes before the dialect's clause that replaces an earlier delivery.
	saveDelivery = `
INSERT INTO {delivery} (client, entity, since, state, reason, last_success, last_failure, first_failure, latest)
VALUES (@client, @entity, @since, @state, @reason, @success, @failure, @first, @latest)`

	// replaceDelivery is that clause for all dialects but MySQL.
	replaceDelivery = `
ON CONFLICT (client, entity) DO UPDATE
SET since = excluded.since, state = excluded.state, reason = excluded.reason, last_success = excluded.last_success,
  last_failure = excluded.last_failure, first_failure = excluded.first_failure, latest = excluded.latest
WHERE {delivery}.latest <= excluded.latest`
)

// LoadDelivery returns the record that [Store.SaveDelivery] saved last for the webhook of a
// scope, with times in microseconds. It returns the zero Record if there is none. Pass
// [webhookcfg.All] for the base. Like every read it fails on a standby.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if the client is empty, the scope is
// invalid, or a name has more than 1,024 bytes.
func (s *Store) LoadDelivery(ctx context.Context, client string, scope webhookcfg.Scope) (deliver.Record, error) {
	v, err := deliveryKey(client, scope)
	if err != nil {
		return deliver.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return deliver.Record{}, s.wrapError("load delivery", err, egress.URL{})
	}
	found, err := read(ctx, s, s.queries.loadDelivery, v, scanDelivery)
	if err != nil || len(found) == 0 {
		return deliver.Record{}, s.wrapError("load delivery", err, egress.URL{})
	}
	return found[0], nil
}

// SaveDelivery replaces the record for the webhook of a scope, unless the saved one has a
// later attempt. The later of LastSuccess and LastFailure counts, in microseconds. If they
// are equal, the last call wins.
//
// Saving doesn't wait for changes of the client (except on SQLite, which has one writer).
// Saves of one client take turns, and those that wait hold no connection. A change doesn't
// delete the record: compare its Since with the webhook's to see whether they belong
// together.
//
// If SaveDelivery returns an error, the record may be saved or not. You can safely save it
// again. It returns the same errors as [Store.LoadDelivery], and one if the server accepts no
// changes.
func (s *Store) SaveDelivery(ctx context.Context, client string, scope webhookcfg.Scope, r deliver.Record) error {
	v, err := deliveryKey(client, scope)
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return s.wrapError("save delivery", err, egress.URL{})
	}
	reason := slices.Index(deliveryReasons, r.Reason)
	if reason < 0 {
		return fmt.Errorf("%w: delivery with the reason %q", webhookcfg.ErrInvalidArgument, r.Reason)
	}
	unlock, err := s.saving.Lock(ctx, client)
	if err != nil {
		return s.wrapError("save delivery", err, egress.URL{})
	}
	defer unlock()
	v["since"] = r.Since.UnixMicro()
	v["state"] = stateActive
	if r.Stopped {
		v["state"] = stateStopped
	}
	v["reason"] = reason
	v["success"] = r.LastSuccess.UnixMicro()
	v["failure"] = r.LastFailure.UnixMicro()
	v["first"] = r.FirstFailure.UnixMicro()
	v["latest"] = max(r.LastSuccess.UnixMicro(), r.LastFailure.UnixMicro())
	_, err = s.execute(ctx, s.queries.saveDelivery, v)
	return s.wrapError("save delivery", err, egress.URL{})
}

// deliveryKey returns the key of a row. The base has an empty entity, which no entity has.
func deliveryKey(client string, scope webhookcfg.Scope) (values, error) {
	if client == "" || scope == (webhookcfg.Scope{}) {
		return nil, fmt.Errorf("%w: delivery without a client or a scope", webhookcfg.ErrInvalidArgument)
	}
	if err := checkNames(client, scope.Entity()); err != nil {
		return nil, err
	}
	return values{"client": []byte(client), "entity": []byte(scope.Entity())}, nil
}

// scanDelivery scans a row. Its columns are NULL if there is no delivery.
func scanDelivery(rows *sql.Rows) (r deliver.Record, err error) {
	var since, state, reason, success, failure, first sql.NullInt64
	err = scanRow(rows, &since, &state, &reason, &success, &failure, &first)
	switch {
	case err != nil || !since.Valid:
		return deliver.Record{}, err
	case state.Int64 < stateActive || state.Int64 > stateStopped, reason.Int64 < 0 || reason.Int64 >= int64(len(deliveryReasons)):
		return deliver.Record{}, fmt.Errorf("delivery with unknown state %d or reason %d", state.Int64, reason.Int64)
	}
	return deliver.Record{
		Since:        unixTime(since.Int64),
		Reason:       deliveryReasons[reason.Int64],
		Stopped:      state.Int64 == stateStopped,
		LastSuccess:  unixTime(success.Int64),
		LastFailure:  unixTime(failure.Int64),
		FirstFailure: unixTime(first.Int64),
	}, nil
}
