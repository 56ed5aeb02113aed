package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// queueFlags are the flags of commands that look into the queue of package outbox.
func queueFlags(s *session, flags *flag.FlagSet) {
	filled.Var(flags, &s.queuePrefix, "queue", "the `prefix` of the outbox's tables in the same database, if it isn't that of the store")
}

func showFlags(s *session, flags *flag.FlagSet) {
	revealing(s, flags)
	queueFlags(s, flags)
}

// queue returns the outbox in the database of a store, or nil if there's none, and warnings about
// settings.
func (s *session) queue(ctx context.Context, st *opened) (box *outbox.Outbox, warnings []string, err error) {
	if st.outbox == nil {
		if s.queuePrefix != "" {
			return nil, nil, errors.New("-queue: this kind of store has no tables")
		}
		return nil, nil, nil
	}
	box, err = st.outbox(cmp.Or(s.queuePrefix, s.prefix))
	if err == nil {
		warnings, err = box.Check(ctx)
	}
	if errors.Is(err, outbox.ErrNoTables) {
		if s.queuePrefix == "" {
			return nil, nil, nil
		}
		err = fmt.Errorf("%w, or check -queue", err)
	}
	return box, warnings, err
}

// noQueue says that there's no queue where it was looked for.
func (s *session) noQueue(st *opened) string {
	if st.outbox == nil {
		return "this kind of store has no queue"
	}
	return fmt.Sprintf("no queue with the prefix %s; if its tables have another, run %s again with -queue", cmp.Or(s.prefix, defaultPrefix), s.command)
}

// defaultPrefix is the default of the prefixes of tables, as in package sqlstore.
const defaultPrefix = "wh_"

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
	Waiting   int            `json:"waiting"`
	Overdue   float64        `json:"overdue_seconds,omitzero"`
	Unclaimed bool           `json:"unclaimed,omitzero"`
	Failing   int            `json:"failing_webhooks,omitzero"`
	Paused    []pauseRecord  `json:"paused,omitzero"`
	Reason    deliver.Reason `json:"reason,omitzero"`
	text      string
}

// pauseRecord says in JSON which webhook is paused. The entity is empty for the default one.
type pauseRecord struct {
	Entity   string    `json:"entity,omitzero"`
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"`
	Reason   string    `json:"reason,omitzero"`
}

func newQueueRecord(c outbox.ClientStats) queueRecord {
	q := queueRecord{c.Waiting, c.Overdue.Seconds(), c.Unclaimed, c.Failing, nil, c.Reason, c.String()}
	for _, p := range c.Pauses {
		q.Paused = append(q.Paused, pauseRecord{p.Scope.Entity(), p.Until, p.Failures, p.Reason})
	}
	return q
}

// statsRecord has the figures of a queue in JSON.
type statsRecord struct {
	Waiting   int             `json:"waiting"`
	Delivered int             `json:"delivered"`
	GivenUp   int             `json:"given_up"`
	Dropped   int             `json:"dropped"`
	Overdue   overdueRecord   `json:"overdue_seconds"`
	Behind    []laggardRecord `json:"behind"`
}

// overdueRecord says for how many seconds the first notification of a kind has been due.
type overdueRecord struct {
	New     float64 `json:"new"`
	Retry   float64 `json:"retry"`
	Failing float64 `json:"failing"`
}

// laggardRecord is a client that's behind.
type laggardRecord struct {
	Client string `json:"client"`
	queueRecord
}

// String returns a line with the states, a line with how late what waits is, and a line for each
// client.
func (r statsRecord) String() string {
	lines := []string{
		fmt.Sprintf("waiting: %v, delivered: %v, given up: %v, dropped: %v", count(r.Waiting), count(r.Delivered), count(r.GivenUp), count(r.Dropped)),
		fmt.Sprintf("due for: %v without an attempt, %v for a retry, %v of clients with a webhook that fails", seconds(r.Overdue.New), seconds(r.Overdue.Retry), seconds(r.Overdue.Failing)),
	}
	for _, c := range r.Behind {
		lines = append(lines, c.text)
	}
	return strings.Join(lines, "\n")
}

// count is a number of notifications. Stats stops counting at 10,000.
type count int

// String implements [fmt.Stringer].
func (c count) String() string {
	if c >= 10_000 {
		return "10000 or more"
	}
	return strconv.Itoa(int(c))
}

func seconds(s float64) time.Duration { return time.Duration(s) * time.Second }

func showQueue(ctx context.Context, s *session) (int, error) {
	return success, s.useFirst(ctx, func(st *opened) error {
		box, _, err := s.queue(ctx, st)
		if err == nil && box == nil {
			err = fmt.Errorf("%s: %s", st.name, s.noQueue(st))
		}
		if err != nil {
			return err
		}
		all, err := box.Stats(ctx)
		if err != nil {
			return err
		}
		late := all.Overdue
		r := statsRecord{all.Waiting, all.Delivered, all.GivenUp, all.Dropped, overdueRecord{late.New.Seconds(), late.Retry.Seconds(), late.Failing.Seconds()}, []laggardRecord{}}
		for _, c := range all.Clients {
			r.Behind = append(r.Behind, laggardRecord{c.Client, newQueueRecord(c)})
		}
		return s.print(r, "%v", r)
	})
}

// waiting returns what waits for a client, or nil if there's no queue.
func (s *session) waiting(ctx context.Context, st *opened, client string) (*queueRecord, error) {
	box, _, err := s.queue(ctx, st)
	if err != nil || box == nil {
		return nil, err
	}
	c, err := box.ClientStats(ctx, client)
	r := newQueueRecord(c)
	return &r, err
}

// eraseQueue removes the notifications of a client. It returns what to say about it.
func (s *session) eraseQueue(ctx context.Context, st *opened, client string) (n *int, what string, err error) {
	box, _, err := s.queue(ctx, st)
	if err != nil || box == nil {
		return nil, s.noQueue(st), err
	}
	erased, err := box.Erase(ctx, client)
	return &erased, fmt.Sprintf("%d notifications", erased), err
}
