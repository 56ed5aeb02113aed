package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// queueFlags are the flags of commands that look into the queue of package outbox.
func queueFlags(s *session, flags *flag.FlagSet) {
	flags.StringVar(&s.queuePrefix, "queue", "", "the `prefix` of the outbox's tables in the same database, if it isn't that of the store")
}

func showFlags(s *session, flags *flag.FlagSet) {
	revealing(s, flags)
	queueFlags(s, flags)
}

// queue returns the outbox in the database of a store, or nil if there's none.
func (s *session) queue(ctx context.Context, st *opened) (*outbox.Outbox, error) {
	if st.outbox == nil {
		if s.queuePrefix != "" {
			return nil, errors.New("-queue: this kind of store has no tables")
		}
		return nil, nil
	}
	box, err := st.outbox(cmp.Or(s.queuePrefix, s.prefix))
	if err == nil {
		err = box.Check(ctx)
	}
	if s.queuePrefix == "" && errors.Is(err, outbox.ErrNoTables) {
		return nil, nil
	}
	return box, err
}

// deliveryRecord says in JSON how deliveries to a webhook go.
type deliveryRecord struct {
	State       string    `json:"state"`
	Reason      string    `json:"reason,omitzero"`
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastFailure time.Time `json:"last_failure,omitzero"`
}

// delivery returns how deliveries to a webhook go, or nil if nobody has recorded it.
func (st *opened) delivery(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (*deliveryRecord, error) {
	if st.deliveries == nil {
		return nil, nil
	}
	health, err := deliver.NewHealth(st.deliveries, nil)
	if err != nil {
		return nil, err
	}
	d, err := health.Status(ctx, client, entity, hook)
	if err != nil || d.State == "" {
		return nil, err
	}
	return &deliveryRecord{d.State, d.Reason, d.LastSuccess.UTC(), d.LastFailure.UTC()}, nil
}

// String returns the state, the reason and the times, if they're set.
func (d deliveryRecord) String() string {
	words := []string{"deliveries: " + d.State}
	if d.Reason != "" {
		words = append(words, "("+d.Reason+")")
	}
	for what, at := range map[string]time.Time{"last success": d.LastSuccess, "last failure": d.LastFailure} {
		if !at.IsZero() {
			words = append(words, what+" "+at.Format(time.RFC3339))
		}
	}
	return strings.Join(words, " ")
}

// queueRecord says in JSON what waits for a client.
type queueRecord struct {
	Waiting     int            `json:"waiting"`
	Overdue     float64        `json:"overdue_seconds,omitzero"`
	Unclaimed   bool           `json:"unclaimed,omitzero"`
	Failing     int            `json:"failing_receivers,omitzero"`
	PausedUntil time.Time      `json:"paused_until,omitzero"`
	Reason      deliver.Reason `json:"reason,omitzero"`
	text        string
}

// waiting returns what waits for a client, or nil if there's no queue.
func (s *session) waiting(ctx context.Context, st *opened, client string) (*queueRecord, error) {
	box, err := s.queue(ctx, st)
	if err != nil || box == nil {
		return nil, err
	}
	c, err := box.ClientStats(ctx, client)
	return &queueRecord{c.Waiting, c.Overdue.Seconds(), c.Unclaimed, c.Failing, c.PausedUntil, c.Reason, c.String()}, err
}

// eraseQueue removes the notifications of a client. It returns what to say about it.
func (s *session) eraseQueue(ctx context.Context, st *opened, client string) (n int, what string, err error) {
	box, err := s.queue(ctx, st)
	if err != nil || box == nil {
		return 0, "there is no queue", err
	}
	n, err = box.Erase(ctx, client)
	return n, fmt.Sprintf("%d notifications", n), err
}
