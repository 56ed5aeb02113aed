package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// BenchmarkView reads pages among a million notifications, of which a hundred thousand are the
// client's, and compares them with a bare query by an index.
func BenchmarkView(b *testing.B) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			f := newFixture(b, e, nil, nil)
			now := time.Now()
			var rows []shownRow
			for i := range 1000 {
				r := shownRow{seq: i, client: fmt.Sprint("c", i%10), entity: fmt.Sprint("e", i%7), state: i / 10 % 5, enqueued: now.Add(-time.Hour).UnixMicro()}
				switch r.state {
				case waiting:
					r.due = now.Add(time.Hour).UnixMicro() + int64(i)
				case delivered, givenUp, dropped:
					r.due = now.Add(-time.Hour).UnixMicro() + int64(i)
				}
				rows = append(rows, r)
			}
			f.fillRows(rows)
			f.double(10)
			analyze := "ANALYZE"
			if e.name == "MariaDB" {
				analyze = "ANALYZE TABLE " + f.prefix + "outbox_message"
			}
			if _, err := f.db.Exec(analyze); err != nil {
				b.Fatal(err)
			}
			bare := fmt.Sprintf("SELECT seq, id, entity, state, due, enqueued, attempts, reason FROM %soutbox_message WHERE client = 'c3' AND seq < 900000 ORDER BY seq DESC LIMIT 25", f.prefix)
			if e.name == "PostgreSQL" {
				bare = fmt.Sprintf("SELECT seq, id, entity, state, due, enqueued, attempts, reason FROM %soutbox_message WHERE client = 'c3'::bytea AND seq < 900000 ORDER BY seq DESC LIMIT 25", f.prefix)
			}
			b.Run("bare", func(b *testing.B) {
				for b.Loop() {
					rows, err := f.db.Query(bare)
					if err != nil {
						b.Fatal(err)
					}
					for rows.Next() {
						var row [8]any
						if err := rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6], &row[7]); err != nil {
							b.Fatal(err)
						}
					}
					_ = rows.Close()
				}
			})
			for _, entity := range []string{"", "e3"} {
				for _, state := range []string{"", "waiting", "delivered", "given_up"} {
					q := webhookcfg.NotificationQuery{Entity: entity, State: state, Limit: 25}
					b.Run(fmt.Sprintf("page/%s.%s", entity, state), func(b *testing.B) {
						for b.Loop() {
							if _, err := f.box.Notifications(b.Context(), "c3", q); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
			for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e3")} {
				b.Run("plan/"+scope.String(), func(b *testing.B) {
					for b.Loop() {
						if _, err := f.box.PlanSendAgain(b.Context(), "c3", webhookcfg.Selection{Scope: scope}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// BenchmarkEnqueue enqueues in a transaction of its own, with the indexes of the view and
// without them.
func BenchmarkEnqueue(b *testing.B) {
	for _, e := range engines {
		for _, name := range []string{"without", "with", "without", "with"} {
			b.Run(e.name+"/"+name, func(b *testing.B) {
				f := newFixture(b, e, nil, nil)
				if name == "without" {
					for _, index := range []string{"newest", "entity"} {
						drop := fmt.Sprintf("DROP INDEX %[1]soutbox_message_%[2]s", f.prefix, index)
						if e.name == "MariaDB" {
							drop += " ON " + f.prefix + "outbox_message"
						}
						if _, err := f.db.Exec(drop); err != nil {
							b.Fatal(err)
						}
					}
				}
				for n := 0; b.Loop(); n++ {
					f.enqueue(fmt.Sprint("c", n%100), fmt.Sprint("e", n%1000), fmt.Sprint("m", n))
				}
			})
		}
	}
}
