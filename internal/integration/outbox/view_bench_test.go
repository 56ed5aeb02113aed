package outbox_test

import (
	"fmt"
	"regexp"
	"slices"
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
			bare := "SELECT seq, id, entity, state, due, enqueued, attempts, reason FROM " + f.prefix + "outbox_message WHERE client = $1 AND seq < $2 ORDER BY seq DESC LIMIT 25"
			if e.name == "MariaDB" {
				bare = regexp.MustCompile(`\$\d`).ReplaceAllString(bare, "?")
			}
			b.Run("bare", func(b *testing.B) {
				for b.Loop() {
					rows, err := f.db.Query(bare, []byte("c3"), 900000)
					if err != nil {
						b.Fatal(err)
					}
					n := 0
					for ; rows.Next(); n++ {
						var row [8]any
						if err := rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6], &row[7]); err != nil {
							b.Fatal(err)
						}
					}
					if _ = rows.Close(); n != 25 {
						b.Fatal(n)
					}
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

// BenchmarkEnqueue enqueues in a transaction of its own, in turn with the indexes of the view
// and without them, and reports the ratio of the medians.
func BenchmarkEnqueue(b *testing.B) {
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			with, without := newFixture(b, e, nil, nil), newFixture(b, e, nil, nil)
			for _, index := range []string{"newest", "entity"} {
				drop := fmt.Sprintf("DROP INDEX %[1]soutbox_message_%[2]s", without.prefix, index)
				if e.name == "MariaDB" {
					drop += " ON " + without.prefix + "outbox_message"
				}
				if _, err := without.db.Exec(drop); err != nil {
					b.Fatal(err)
				}
			}
			took := make(map[*fixture][]time.Duration)
			for n := 0; b.Loop(); n++ {
				for _, f := range []*fixture{with, without} {
					start := time.Now()
					f.enqueue(fmt.Sprint("c", n%100), fmt.Sprint("e", n%1000), fmt.Sprint("m", n))
					took[f] = append(took[f], time.Since(start))
				}
			}
			median := func(f *fixture) float64 {
				slices.Sort(took[f])
				return float64(took[f][len(took[f])/2])
			}
			b.ReportMetric(median(with), "ns/with")
			b.ReportMetric(median(without), "ns/without")
			b.ReportMetric(median(with)/median(without), "ratio")
		})
	}
}
