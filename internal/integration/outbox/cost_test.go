package outbox_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

var (
	backlog = flag.Int("backlog", 30_000, "how many notifications wait in TestCost")
	speed   = flag.Duration("speed", 5*time.Second, "how long TestBloat sends at full speed")
)

// fillBacklog makes half of the backlog wait for one client, and the rest for a thousand
// others, in a group. Nothing of it is due.
func (f *fixture) fillBacklog(e engineCase, n int, group int64) {
	numbers := map[string]string{
		"SQLite":     "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) ",
		"PostgreSQL": "WITH s AS (SELECT n::text AS t, n FROM generate_series(1, %d) n) ",
		"MariaDB":    "",
	}[e.name]
	from := "s"
	if e.name == "MariaDB" {
		from = fmt.Sprintf("(SELECT seq AS n FROM seq_1_to_%d) s", n)
	} else {
		numbers = fmt.Sprintf(numbers, n)
	}
	bytes := func(text string) string {
		switch e.name {
		case "PostgreSQL":
			return "convert_to(" + text + ", 'UTF8')"
		case "SQLite":
			return "CAST(" + text + " AS BLOB)"
		}
		return text
	}
	concat := func(a, b string) string { return "CONCAT(" + a + ", " + b + ")" }
	if e.name == "SQLite" {
		concat = func(a, b string) string { return "(" + a + " || (" + b + "))" }
	}
	future := time.Now().Add(24 * time.Hour).UnixMicro()
	columns := "INSERT INTO {message} (client, entity, id, state, grp, due, enqueued, attempts, status, reason, content_type, body) "
	values := fmt.Sprint("SELECT ", bytes("CASE WHEN s.n % 2 = 0 THEN 'dead' ELSE "+concat("'c'", "s.n % 2000")+" END"), ", ", bytes(concat("'e'", "s.n % 1000")), ", ",
		concat("'b'", "s.n"), ", ", waiting, ", ", group, ", ", future, " + s.n, 1, 1, 500, 'status', '', ", bytes("'{}'"), " FROM ", from)
	if e.name == "MariaDB" {
		f.exec(columns, values)
	} else {
		f.exec(numbers, columns, values)
	}
	f.exec("INSERT INTO ", f.prefix, "outbox_line (client, owner, due) SELECT DISTINCT client, 0, ", time.Now().Add(10*time.Minute).UnixMicro(), " FROM {message}")
}

// TestCost: what a process does for one client costs the same, whatever waits for others and
// for the client itself. Each statement that it makes is measured, and so are those of the
// operator's calls. While nothing is due, it makes few.
func TestCost(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			for _, client := range []string{"a", "dead", "c1"} {
				f.set(client, "/")
			}
			start := time.Now()
			f.fillBacklog(e, *backlog, f.tried("dead"))
			f.analyze(e, "outbox_message") // until MariaDB has done so by itself, it reads more
			t.Logf("%d wait after %v", *backlog, time.Since(start))
			var mu sync.Mutex
			seen := make(map[string][]call) // the first ones of a kind, and the last
			calls := 0
			db, _ := f.wired(func(c call) (before, after error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if all := seen[c.kind]; c.text != "" && len(all) < 5 {
					seen[c.kind] = append(all, c)
				} else if c.text != "" {
					all[4] = c
				}
				return nil, nil
			})
			box := f.peer(e, db, outbox.Options{})
			stop := f.runBox(box)
			f.enqueue("a", "e", "m1", "m2")
			f.enqueue("dead", "new", "m3")
			f.await(3, 10*time.Second)
			f.awaitEnds(outbox.Delivered, 3)
			for _, scope := range []webhookcfg.Scope{webhookcfg.Entity("e2"), webhookcfg.All()} {
				box.Changed("dead", scope) // although it leads where it led before
			}
			for what, err := range map[string]error{
				"list": func() error {
					for _, client := range []string{"", "dead", "c1"} {
						page, err := box.List(t.Context(), outbox.Query{State: outbox.Waiting, Client: client})
						if err == nil && page.Next != "" {
							_, err = box.List(t.Context(), outbox.Query{State: outbox.Waiting, Client: client, After: page.Next})
						}
						if err != nil {
							return err
						}
					}
					return f.readMiddle(box)
				}(),
				"stats": func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					_, err := box.Stats(ctx)
					return err
				}(),
				"send again": box.SendAgain(t.Context(), "a", sent.Selection{ID: "m1"}),
				"erase":      func() error { _, err := box.Erase(t.Context(), "c1"); return err }(),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			f.awaitEnds(outbox.Delivered, 3)
			f.awaitNoMarks()
			time.Sleep(3 * time.Second) // it looks less and less often, and sweeps
			count := func() int { mu.Lock(); defer mu.Unlock(); return calls }
			before := count()
			time.Sleep(3 * time.Second)
			idle := count() - before
			t.Logf("%.1f calls a second while %d wait", float64(idle)/3, *backlog)
			if idle > 3*10 {
				t.Errorf("%d calls in 3 seconds", idle)
			}
			// To send all again takes one statement for each few hundred.
			if err := box.SendAgain(t.Context(), "dead", sent.Selection{Scope: webhookcfg.All()}); err != nil {
				t.Error(err)
			}
			f.await(1000, 20*time.Second)
			stop()
			for _, kind := range slices.Sorted(mapKeys(seen)) {
				f.expectCost(e, seen[kind])
			}
		})
	}
	all.wait()
}

// readMiddle reads lists from the middle of the largest backlog on.
func (f *fixture) readMiddle(box *outbox.Outbox) error {
	var id string
	var group, due, seq int64
	middle := fmt.Sprint("SELECT id, grp, due, seq FROM ", f.prefix, "outbox_message WHERE id = 'b", *backlog/4*2, "'")
	if err := f.db.QueryRowContext(f.t.Context(), middle).Scan(&id, &group, &due, &seq); err != nil {
		return err
	}
	after := func(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }
	entries, err := box.List(f.t.Context(), outbox.Query{
		State: outbox.Waiting, Client: "dead", After: after(fmt.Sprintf(`{"c":"ZGVhZA==","g":%d,"d":%d,"s":%d}`, group, due, seq)),
	})
	if err != nil || len(entries.Entries) != 100 {
		return fmt.Errorf("%d entries: %w", len(entries.Entries), err)
	}
	shown, err := box.Notifications(f.t.Context(), "dead", sent.Query{
		State: "waiting", Limit: 100, After: after(fmt.Sprintf(`{"i":"%s","g":%d,"d":%d}`, id, group, due/1e6)),
	})
	if err == nil && (len(shown.Notifications) != 100 || shown.Notifications[0].ID != entries.Entries[0].ID) {
		err = fmt.Errorf("%d notifications", len(shown.Notifications))
	}
	return err
}

// awaitNoMarks waits until whoever has the lines has done what a change of webhooks asks for.
func (f *fixture) awaitNoMarks() {
	f.t.Helper()
	n := 0
	for range 3000 { // webhooks are looked up for 16 seconds, in case they come from a copy
		if err := f.db.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_mark").Scan(&n); err == nil && n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("%d marks are left", n)
}

func mapKeys(m map[string][]call) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// expectCost measures the statements of a kind. One may read as many rows as it returns or changes,
// and some more, but not a backlog.
func (f *fixture) expectCost(e engineCase, calls []call) {
	f.t.Helper()
	kind := calls[0].kind
	most := 4000 // a read of hundreds of notifications, or of a thousand numbers with their lines
	if strings.HasPrefix(kind, "UPDATE message") {
		most = 30_000 // hundreds of them, with their indexes
	}
	if strings.Contains(kind, "COUNT(*)") || strings.Contains(kind, "FROM f") && !strings.Contains(kind, "f.grp") {
		most = 25_000 // of the figures: counts up to 10,000, and looks at up to 1,000 clients
	}
	highest := 0
	for _, c := range calls {
		cost, plan := f.measure(e, c.text, c.values())
		if highest = max(highest, cost); cost > most {
			f.t.Errorf("reads %d, want at most %d: %s\n%s", cost, most, c.text, plan)
			break
		}
	}
	f.t.Logf("%6d %s", highest, kind[:min(len(kind), 90)])
}

// measure runs a statement, and undoes what it did. It returns how much it read, in units of
// the engine: pages of PostgreSQL, rows of MariaDB. SQLite doesn't tell, so its plan mustn't
// read a whole table.
func (f *fixture) measure(e engineCase, text string, args []any) (cost int, plan string) {
	f.t.Helper()
	ctx := context.Background()
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	switch e.name {
	case "PostgreSQL":
		if err := tx.QueryRow("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+text, args...).Scan(&plan); err != nil {
			f.t.Fatalf("%v: %s", err, text)
		}
		return pagesRead(f.t, plan), plan
	case "MariaDB":
		if _, err := tx.Exec("SET SESSION max_statement_time = 5"); err != nil {
			f.t.Fatal(err)
		}
		defer func() { _, _ = tx.Exec("SET SESSION max_statement_time = 0") }()
		before := handlerReads(f.t, tx)
		rows, err := tx.QueryContext(ctx, text, args...)
		if err == nil {
			for rows.Next() {
				_ = rows.Err()
			}
			err = rows.Err()
			_ = rows.Close()
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "max_statement_time"):
			return 1_000_000, err.Error()
		case err != nil:
			f.t.Fatalf("%v: %s", err, text)
		}
		return handlerReads(f.t, tx) - before, ""
	default:
		rows, err := tx.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...)
		if err != nil {
			f.t.Fatalf("%v: %s", err, text)
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				f.t.Fatal(err)
			}
			plan += detail + "\n"
		}
		sortsFew := regexp.MustCompile(`WITH RECURSIVE|UNION ALL|\) q ON true\s+ORDER BY`).MatchString(text)
		isLast := strings.HasSuffix(text, "_message ORDER BY seq DESC LIMIT 1") // a row of its primary key, which the plan calls a scan
		for line := range strings.Lines(plan) {
			isWhole := !isLast && strings.HasPrefix(line, "SCAN ") && (strings.Contains(line, "outbox_message") || strings.Contains(line, "outbox_line") || strings.HasPrefix(line, "SCAN m ")) && !strings.Contains(line, "INDEX")
			if isWhole || strings.Contains(line, "TEMP B-TREE") && !sortsFew {
				cost = 1_000_000
			}
		}
		return cost, plan
	}
}

func handlerReads(t testing.TB, tx *sql.Tx) (n int) {
	t.Helper()
	rows, err := tx.Query("SHOW SESSION STATUS LIKE 'Handler_read%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var reads int
		if err := rows.Scan(&name, &reads); err != nil {
			t.Fatal(err)
		}
		n += reads
	}
	return n
}

// TestBloat sends at full speed to many clients, and looks at what PostgreSQL keeps of it.
func TestBloat(t *testing.T) {
	e := engines[1]
	f := newFixture(t, e, nil, nil)
	f.exec("ALTER SYSTEM SET autovacuum_naptime = '1s'")
	f.exec("SELECT pg_reload_conf()")
	var arrived atomic.Int64
	f.respond = func(http.ResponseWriter, *http.Request) { arrived.Add(1) }
	const clients = 50
	var names []string
	for i := range clients {
		names = append(names, fmt.Sprint("c", i))
		f.set(names[i], "/")
	}
	var statements atomic.Int64
	db, _ := f.wired(func(call) (before, after error) {
		statements.Add(1)
		return nil, nil
	})
	f.runBox(f.peer(e, db, outbox.Options{KeepDelivered: outbox.Keep{For: -1}}))
	var sizes []int64
	done := time.After(*speed)
	tick := time.NewTicker(max(*speed/5, time.Second))
	defer tick.Stop()
	n := 0
	report := func() {
		var lineSize, indexes, messages, live, dead int64
		if err := f.db.QueryRow(fmt.Sprintf(`SELECT pg_total_relation_size('%[1]soutbox_line') + pg_total_relation_size('%[1]soutbox_process'),
pg_indexes_size('%[1]soutbox_message'), pg_table_size('%[1]soutbox_message'), n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relname = '%[1]soutbox_message'`, f.prefix)).
			Scan(&lineSize, &indexes, &messages, &live, &dead); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, lineSize)
		t.Logf("%d enqueued, %d arrived: lines and processes have %d KiB, notifications %d KiB and %d KiB of indexes, %d rows live and %d dead",
			n, arrived.Load(), lineSize>>10, messages>>10, indexes>>10, live, dead)
	}
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		case <-tick.C:
			report()
		default:
			if int64(n)-arrived.Load() > 2000 {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			tx, err := f.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				n++
				if err := f.box.Enqueue(t.Context(), tx, notification(names[n%clients], fmt.Sprint("e", n), fmt.Sprint("m", n))); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2000 {
		if arrived.Load() >= int64(n) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.awaitNoneWaiting()
	made := float64(statements.Load()) / float64(n)
	report()
	time.Sleep(1500 * time.Millisecond) // statistics lag behind
	var inserted, updated, hot, other int64
	if err := f.db.QueryRow(fmt.Sprintf(`SELECT SUM(n_tup_ins) FILTER (WHERE relname = '%[1]soutbox_message'), SUM(n_tup_upd) FILTER (WHERE relname = '%[1]soutbox_message'),
SUM(n_tup_hot_upd) FILTER (WHERE relname = '%[1]soutbox_message'), SUM(n_tup_upd) FILTER (WHERE relname <> '%[1]soutbox_message') FROM pg_stat_user_tables WHERE relname LIKE '%[1]soutbox%%'`, f.prefix)).
		Scan(&inserted, &updated, &hot, &other); err != nil {
		t.Fatal(err)
	}
	versions := float64(inserted+updated) / float64(n)
	t.Logf("%.2f statements and %.2f row versions a delivery, and %.4f of lines and processes; %d of %d updates without a change of indexes; %d a second", made, versions, float64(other)/float64(n), hot, updated, int(float64(n)/speed.Seconds()))
	if int64(n) != arrived.Load() || versions > 3 {
		t.Errorf("%d of %d arrived, with %.2f row versions each", arrived.Load(), n, versions)
	}
	if made > 0.4 {
		t.Errorf("%.2f statements a delivery", made)
	}
	if last := sizes[len(sizes)-1]; last > 4<<20 {
		t.Errorf("lines and processes of %d clients have %d KiB", clients, last>>10)
	}
}

// TestSweepOfManyClients: a sweep takes few statements, however many clients have something
// that stays.
func TestSweepOfManyClients(t *testing.T) {
	t.Parallel()
	const clients = 1000 // of fillBacklog
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.fillBacklog(e, 4*clients, 0)
			now := time.Now().UnixMicro()
			f.exec("UPDATE {message} SET state = ", delivered, ", due = seq + ", now-10_000)
			f.exec("UPDATE {message} SET due = 1 WHERE id IN ('b7', 'b2007')")
			var calls atomic.Int64
			db, _ := f.wired(func(c call) (before, after error) {
				if strings.Contains(c.kind, "FROM message") && !strings.Contains(c.kind, "FROM line") {
					calls.Add(1)
				}
				return nil, nil
			})
			stop := f.runBox(f.peer(e, db, outbox.Options{KeepDelivered: outbox.Keep{For: time.Hour, PerClient: 100}}))
			f.awaitStats(func(s outbox.Stats) bool { return s.Delivered == 2*clients+100-2 })
			time.Sleep(500 * time.Millisecond)
			stop()
			t.Logf("%d statements", calls.Load())
			if n := calls.Load(); n > 60 {
				t.Errorf("%d statements", n)
			}
		})
	}
}

// TestSweepReads: a statement of a sweep reads a bounded number of rows, however many clients keep
// as much as they may. On SQLite, everybody waits for it.
func TestSweepReads(t *testing.T) {
	t.Parallel()
	const clients, keep = 100, 1000
	e := engines[2] // which counts what is read
	f := newFixture(t, e, nil, nil)
	f.exec("INSERT INTO {message} (client, entity, id, state, grp, due, enqueued, attempts, status, reason, content_type, body) ",
		"SELECT CONCAT('c', seq % ", clients, "), 'e', CONCAT('m', seq), ", delivered, ", 0, ", time.Now().UnixMicro(), " + seq, 1, 1, 204, '', '', '{}' FROM seq_1_to_", clients*(keep+1))
	f.exec("ANALYZE TABLE {message}") // until the server has done so by itself, it reads more
	var mu sync.Mutex
	var sweeps []call
	db, _ := f.wired(func(c call) (before, after error) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(c.kind, "OFFSET") {
			sweeps = append(sweeps, c)
		}
		return nil, nil
	})
	stop := f.runBox(f.peer(e, db, outbox.Options{KeepDelivered: outbox.Keep{PerClient: keep}}))
	f.awaitStats(func(outbox.Stats) bool {
		var n int
		if err := f.db.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_message").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == clients*keep
	})
	stop()
	mu.Lock()
	defer mu.Unlock()
	most := 0
	for _, c := range sweeps {
		args := make([]any, len(c.args))
		for i, a := range c.args {
			args[i] = a.Value
		}
		cost, _ := f.measure(e, c.text, args)
		most = max(most, cost)
	}
	t.Logf("%d statements, the longest reads %d rows", len(sweeps), most)
	if len(sweeps) == 0 || most > 60_000 {
		t.Errorf("one of %d statements reads %d rows, want 60,000 at most", len(sweeps), most)
	}
}

// TestListingReads: a page of the groups in which something waits for a client costs the same,
// however many groups there are. MariaDB reads those that come after it, too.
func TestListingReads(t *testing.T) {
	t.Parallel()
	const groups = 2000
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.fill("a", groups, "m")
			wait := func() { // each for a webhook of its own that isn't set any more
				f.exec("UPDATE {message} SET state = 0, attempts = 1, due = ", time.Now().Add(time.Hour).UnixMicro(), ", grp = 4003 + 4 * seq")
				f.analyze(e, "outbox_message")
			}
			wait()
			var mu sync.Mutex
			var pages []call
			db, _ := f.wired(func(c call) (before, after error) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(c.kind, "SELECT f.grp") {
					pages = append(pages, c)
				}
				return nil, nil
			})
			stop := f.runBox(f.peer(e, db, outbox.Options{}))
			f.enqueue("a", "e", "new")
			f.await(groups+1, time.Minute)
			stop()
			wait()
			mu.Lock()
			defer mu.Unlock()
			most := 0
			for _, c := range pages {
				cost, _ := f.measure(e, c.text, c.values())
				most = max(most, cost)
			}
			t.Logf("%d pages, the longest reads %d", len(pages), most)
			want := map[string]int{"SQLite": 0, "PostgreSQL": 2000, "MariaDB": 4000 + 2*groups}[e.name] // of 200 groups
			if len(pages) < 2 || most > want {
				t.Errorf("one of %d pages reads %d, want at most %d", len(pages), most, want)
			}
		})
	}
	all.wait()
}
