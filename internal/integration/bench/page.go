package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

const pageSize = 25

// bareSelect reads what a page shows, by the index of the newest ones.
const bareSelect = `SELECT seq, id, entity, state, due, enqueued, attempts, reason FROM {message} WHERE client = $1 AND seq < $2 ORDER BY seq DESC LIMIT 25`

// pages measures what clients see of their notifications on each database.
func (s settings) pages(t *testing.T, r *report) {
	engines := []*queueDatabase{onSQLite(t)}
	if s.shared {
		engines = append(engines, onPostgreSQL(t))
	}
	r.section("Pages of notifications", fmt.Sprintf(`Pages of %d notifications among %s, of which a tenth are the client's. The reference reads
as many rows with the same columns by an index, in one bare query. What can be sent again is
counted up to 1,000, which may take as long as a page.`, pageSize, grouped(s.records)))
	for _, d := range engines {
		r.table(pairHeader, queueTrial{s, t, d}.pages()...)
	}
}

// pages compares what clients see of their notifications with a bare query by an index.
func (q queueTrial) pages() (rows [][]string) {
	queue := newQueue(q.t, q.d)
	table := queue.prefix + "outbox_message"
	queue.fillPast(table, q.records)
	client, query := "client3", strings.Replace(bareSelect, "{message}", table, 1)
	bare := benchmark(func(b *testing.B) {
		for b.Loop() {
			if err := q.readBare(query, client); err != nil {
				b.Fatal(err)
			}
		}
	})
	page := func(entity, state string) func(context.Context) error {
		return func(ctx context.Context) error {
			page, err := queue.box.Notifications(ctx, client, webhookcfg.NotificationQuery{Entity: entity, State: state, Limit: pageSize})
			if err == nil && len(page.Notifications) != pageSize {
				err = fmt.Errorf("%d notifications on a page", len(page.Notifications))
			}
			return err
		}
	}
	withPlan := func(scope webhookcfg.Scope) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := page(scope.Entity(), "")(ctx); err != nil {
				return err
			}
			_, err := queue.box.PlanSendAgain(ctx, client, webhookcfg.Selection{Scope: scope})
			return err
		}
	}
	for _, p := range []struct {
		name   string
		read   func(context.Context) error
		budget float64
	}{
		{"newest", page("", ""), 10},
		{"waiting", page("", "waiting"), 10},
		{"given up", page("", "given_up"), 10},
		{"newest of an entity", page("e3", ""), 10},
		{"waiting of an entity", page("e3", "waiting"), 10},
		{"given up of an entity", page("e3", "given_up"), 10},
		{"newest, and what can be sent again", withPlan(webhookcfg.All()), 20},
		{"newest of an entity, and what can be sent again", withPlan(webhookcfg.Entity("e3")), 20},
	} {
		ours := benchmark(func(b *testing.B) {
			for b.Loop() {
				if err := p.read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		rows = append(rows, pair{q.d.name + ": " + p.name, ours, bare, p.budget}.measure(q.rounds))
	}
	return rows
}

func (q queueTrial) readBare(query, client string) error {
	rows, err := q.d.Query(query, []byte(client), int64(1)<<60)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var row [8]any
		if err := rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6], &row[7]); err != nil {
			return err
		}
	}
	if n != pageSize {
		return fmt.Errorf("%d rows", n)
	}
	return rows.Err()
}

// fillPast makes about n notifications of ten clients, each with seven entities, in all states.
func (q *queue) fillPast(table string, n int) {
	q.t.Helper()
	const clients, entities = 10, 7
	q.fill(entities, names("client", clients)...)
	tidy := "ANALYZE"
	if q.name == "PostgreSQL" {
		tidy = "VACUUM ANALYZE" // as the server does by itself, but not meanwhile
	}
	now, hour := time.Now().UnixMicro(), time.Hour.Microseconds()
	for _, statement := range []string{
		fmt.Sprintf(`
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d)
INSERT INTO %s (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body)
SELECT client, entity, id || '_' || n, n %% 5, CASE n %% 5 WHEN 0 THEN 0 WHEN 1 THEN %d + n ELSE %d + n END, %[4]d, 0, 1, 500, 'status', '', body
FROM s CROSS JOIN %[2]s`, n/clients/entities, table, now+hour, now-hour),
		tidy,
	} {
		if _, err := q.Exec(statement); err != nil {
			q.t.Fatal(err)
		}
	}
}
