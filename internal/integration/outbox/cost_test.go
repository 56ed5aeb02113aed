package outbox_test

import (
	"context"
	"database/sql"
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
// others. Nothing of it is due.
func (f *fixture) fillBacklog(e engineCase, n int) {
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
	columns := "INSERT INTO {message} (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body) "
	values := fmt.Sprint("SELECT ", bytes("CASE WHEN s.n % 2 = 0 THEN 'dead' ELSE "+concat("'c'", "s.n % 2000")+" END"), ", ", bytes(concat("'e'", "s.n % 1000")), ", ",
		concat("'b'", "s.n"), ", 1, ", future, " + s.n, 1, 1, 1, 500, 'status', '', ", bytes("'{}'"), " FROM ", from)
	if e.name == "MariaDB" {
		f.exec(columns, values)
	} else {
		f.exec(numbers, columns, values)
	}
	f.exec("INSERT INTO ", f.prefix, "outbox_line (client, owner, due, pauses) SELECT DISTINCT client, 0, ", future, ", '' FROM {message}")
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
			start := time.Now()
			f.fillBacklog(e, *backlog)
			t.Logf("%d wait after %v", *backlog, time.Since(start))
			var mu sync.Mutex
			seen := make(map[string]call)
			calls := 0
			db, _ := f.wired(func(c call) (before, after error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if c.text != "" {
					seen[c.kind] = c
				}
				return nil, nil
			})
			box := f.peer(e, db, outbox.Options{})
			stop := f.runBox(box)
			for _, client := range []string{"a", "dead", "c1"} {
				f.set(client, "/")
			}
			f.enqueue("a", "e", "m1", "m2")
			f.enqueue("dead", "new", "m3")
			f.await(3, 10*time.Second)
			f.awaitEnds(outbox.Delivered, 3)
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
					return nil
				}(),
				"wake":       box.Wake(t.Context(), "a"),
				"stats":      func() error { _, err := box.Stats(t.Context()); return err }(),
				"send again": box.SendAgain(t.Context(), "a", sent.Selection{ID: "m1"}),
				"erase":      func() error { _, err := box.Erase(t.Context(), "c1"); return err }(),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			f.awaitEnds(outbox.Delivered, 3)
			time.Sleep(3 * time.Second) // it looks less and less often, and sweeps
			count := func() int { mu.Lock(); defer mu.Unlock(); return calls }
			before := count()
			time.Sleep(3 * time.Second)
			idle := count() - before
			t.Logf("%.1f calls a second while %d wait", float64(idle)/3, *backlog)
			if idle > 3*12 {
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

func mapKeys(m map[string]call) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// expectCost measures a statement. It may read as many rows as it returns or changes, and some
// more, but not a backlog.
func (f *fixture) expectCost(e engineCase, c call) {
	f.t.Helper()
	most := 3000 // a read of 512 notifications
	if strings.HasPrefix(c.kind, "UPDATE message") {
		most = 30_000 // hundreds of them, with their indexes
	}
	if strings.Contains(c.kind, "COUNT(*)") || strings.Contains(c.kind, "l.pauses") {
		most = 25_000 // of the figures: counts up to 10,000, and looks at up to 1,000 clients
	}
	args := make([]any, len(c.args))
	for i, a := range c.args {
		args[i] = a.Value
	}
	if strings.Contains(c.kind, "(due, seq) >") || strings.Contains(c.kind, "(due >") { // in the middle of the largest backlog
		f.deep(c.kind, args)
	}
	cost, plan := f.measure(e, c.text, args)
	f.t.Logf("%6d %s", cost, strings.ReplaceAll(c.kind, "\n", " ")[:min(len(c.kind), 90)])
	if cost > most {
		f.t.Errorf("reads %d, want at most %d: %s\n%s", cost, most, c.text, plan)
	}
}

// deep sets the arguments of a read that starts at a position.
func (f *fixture) deep(kind string, args []any) {
	var due, seq int64
	if err := f.db.QueryRow("SELECT MAX(due), MAX(seq) FROM "+f.prefix+"outbox_message WHERE state = 1").Scan(&due, &seq); err != nil {
		f.t.Fatal(err)
	}
	middle := due - int64(*backlog)/2
	for i, a := range args {
		switch a := a.(type) {
		case []byte:
			args[i] = []byte("dead")
		case int64:
			if a == 0 || a == -1 {
				args[i] = int64(0)
			}
		}
	}
	// The position is the pair of arguments before the limit.
	position := regexp.MustCompile(`\(due, seq\)|due [<>]`)
	if position.MatchString(kind) && len(args) >= 3 {
		for i := range args {
			if _, ok := args[i].(int64); ok && i > 0 && i < len(args)-1 {
				args[i] = middle
				break
			}
		}
	}
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
		before := handlerReads(f.t, tx)
		rows, err := tx.QueryContext(ctx, text, args...)
		if err != nil {
			f.t.Fatalf("%v: %s", err, text)
		}
		for rows.Next() {
			_ = rows.Err()
		}
		_ = rows.Close()
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
		for line := range strings.Lines(plan) {
			isWhole := strings.HasPrefix(line, "SCAN ") && (strings.Contains(line, "outbox_message") || strings.Contains(line, "outbox_line") || strings.HasPrefix(line, "SCAN m ")) && !strings.Contains(line, "INDEX")
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
	f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{KeepDelivered: -1}))
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
	report()
	time.Sleep(1500 * time.Millisecond) // statistics lag behind
	var inserted, updated, hot, other int64
	if err := f.db.QueryRow(fmt.Sprintf(`SELECT SUM(n_tup_ins) FILTER (WHERE relname = '%[1]soutbox_message'), SUM(n_tup_upd) FILTER (WHERE relname = '%[1]soutbox_message'),
SUM(n_tup_hot_upd) FILTER (WHERE relname = '%[1]soutbox_message'), SUM(n_tup_upd) FILTER (WHERE relname <> '%[1]soutbox_message') FROM pg_stat_user_tables WHERE relname LIKE '%[1]soutbox%%'`, f.prefix)).
		Scan(&inserted, &updated, &hot, &other); err != nil {
		t.Fatal(err)
	}
	versions := float64(inserted+updated) / float64(n)
	t.Logf("%.2f row versions a delivery, and %.4f of lines and processes; %d of %d updates without a change of indexes; %d a second", versions, float64(other)/float64(n), hot, updated, int(float64(n)/speed.Seconds()))
	if int64(n) != arrived.Load() || versions > 3 {
		t.Errorf("%d of %d arrived, with %.2f row versions each", arrived.Load(), n, versions)
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
			f.fillBacklog(e, 4*clients)
			now := time.Now().UnixMicro()
			f.exec("UPDATE {message} SET state = 2, due = seq + ", now-10_000)
			f.exec("UPDATE {message} SET due = 1 WHERE id IN ('b7', 'b2007')")
			var calls atomic.Int64
			db, _ := f.wired(func(c call) (before, after error) {
				if strings.Contains(c.kind, "FROM message") && !strings.Contains(c.kind, "FROM line") {
					calls.Add(1)
				}
				return nil, nil
			})
			stop := f.runBox(f.peer(e, db, outbox.Options{KeepDelivered: time.Hour, KeepDeliveredPerClient: 100}))
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
	f.exec("INSERT INTO {message} (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body) ",
		"SELECT CONCAT('c', seq % ", clients, "), 'e', CONCAT('m', seq), 2, ", time.Now().UnixMicro(), " + seq, 1, 1, 1, 204, '', '', '{}' FROM seq_1_to_", clients*(keep+1))
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
	stop := f.runBox(f.peer(e, db, outbox.Options{KeepDeliveredPerClient: keep}))
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
