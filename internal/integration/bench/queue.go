package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	receiverSlots = 4  // the default of deliver.Options.PerHost
	probes        = 10 // small clients, whose notifications are timed
	probeEvery    = 20 * time.Millisecond
)

// queues measures package outbox on each database.
func (s settings) queues(t *testing.T, r *report) {
	engines := []*queueDatabase{onSQLite(t)}
	if s.shared {
		engines = append(engines, onPostgreSQL(t))
	}
	var shares, drains, repairs, costs, enqueues, rests [][]string
	var waits []waitTrial
	for _, d := range engines {
		trial := queueTrial{s, t, d}
		// The small ones come first, because a database tidies up after the others.
		enqueues = append(enqueues, trial.enqueues())
		costs = append(costs, trial.costs()...)
		rests = append(rests, trial.rest())
		if d.name == "PostgreSQL" {
			drains = trial.drain()
		}
		shares = append(shares, trial.shares()...)
		failing, repaired := trial.repair()
		repairs = append(repairs, repaired, trial.recovery())
		waits = append(waits, trial.waits(failing)...)
	}
	r.section("Queue", fmt.Sprintf(`[Package outbox](../../../webhookcfg/deliver/outbox) with its defaults, but
attempts end after %v. Each receiver gets %d requests at a time, and each notification of a
client is of another entity. The times of a receiver are how long it takes to respond. What its
slots allow is measured with %[2]d goroutines that post to the same receiver with a bare
http.Client. Receivers run in this process, and share its CPUs.`, queueTimeout, receiverSlots))
	r.table([]string{"queue on", "one client's backlog", "time", "what the slots allow", "share", "budget", "requests per message", "budget", "versions of a row after its INSERT", "budget"}, shares...)
	if s.shared {
		fmt.Fprintf(r.out, `
The next backlog is one of %s for %d clients with quick receivers, on PostgreSQL. The
reference is a bare worker of River (github.com/riverqueue/river) with its fastest fetch
settings, and as many jobs at a time as all slots allow. It posts to the same receivers with a
bare http.Client and the reference signature. The CPU time includes the receivers'.
`, grouped(drainClients*queueTrial{settings: s}.scaled(1000)), drainClients)
		r.table([]string{"one backlog for many clients", "outbox", "River", "ratio", "budget"}, drains...)
	}
	fmt.Fprintf(r.out, `
A webhook that fails five times in a row is paused for five seconds, and then for up to
[Options.MaxPause](../../../webhookcfg/deliver). Setting another URL ends the pause, as in the first
row. If nobody does that, a receiver that has recovered gets nothing until then, so the second row
begins at the end of the pause.
`)
	r.table([]string{"queue on", "a client's receiver works again", "first delivery", "budget", "last delivery", "what the slots allow", "ratio", "budget"}, repairs...)
	var rows [][]string
	for _, trial := range waits {
		rows = append(rows, trial.row())
	}
	r.table([]string{"queue on", "p99 from a commit to the delivery, for small clients", "quiet", "meanwhile", "ratio", "budget"}, rows...)
	r.plot("waits.svg", plotWaits(waits))

	r.section("Cost of the queue", `The CPU time from a change to its delivery is that of this process and of the database, without
the receiver's. The reference inserts the same row into a table with nothing but a primary key,
in a transaction, and then posts it with a bare http.Client and the reference signature.`)
	r.table([]string{"queue on", "CPU time of a notification", "outbox", "reference", "ratio", "budget"}, costs...)
	r.table([]string{"queue on", "time of a transaction", "with Enqueue", "with the bare INSERT", "ratio", "budget"}, enqueues...)
	r.table([]string{"queue on", "idle process, cores", "budget", "idle process, statements a second", "budget"}, rests...)
	if s.shared {
		row := queueTrial{s, t, engines[1]}.kill()
		r.section("A killed sender", `Two processes send from a queue on PostgreSQL. The one that is sending to all clients is killed.
Duplicates are messages that receivers got again. The most that there may be are the requests in
flight, and those that completed in the last 100 ms.`)
		r.table([]string{"clients", "until each gets messages again", "budget", "duplicates", "budget"}, row)
	}
}

// queueTrial measures the queue on a database.
type queueTrial struct {
	settings
	t *testing.T
	d *queueDatabase
}

// scaled returns n, or much less in a quick run.
func (q queueTrial) scaled(n int) int { return max(n*q.loaded/full.loaded, 2*receiverSlots) }

// slots returns how long a receiver's slots take for a message, with a bare client.
func (q queueTrial) slots(webhook string, receiverTime time.Duration) time.Duration {
	q.t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: receiverSlots}}
	defer client.CloseIdleConnections()
	post, err := signedPosts(client, webhook)
	if err != nil {
		q.t.Fatal(err)
	}
	n, elapsed, err := callFor(max(4*q.turn, 5*receiverTime), receiverSlots, post)
	if err != nil {
		q.t.Fatal(err)
	}
	return elapsed / time.Duration(n)
}

// shares measures how much of a receiver's slots one client's backlog uses.
func (q queueTrial) shares() (rows [][]string) {
	for _, backlog := range []struct {
		n    int
		time time.Duration
	}{{1000, 10 * time.Millisecond}, {20_000, 10 * time.Millisecond}, {1000, 50 * time.Millisecond}, {500, 200 * time.Millisecond}} {
		n, receiverTime := q.scaled(backlog.n), backlog.time
		receivers := newReceivers(q.t)
		webhook := fmt.Sprint(receivers.URL, "/", receiverTime)
		ideal := time.Duration(n) * q.slots(webhook, receiverTime)
		queue := newQueue(q.t, q.d)
		queue.set("acme", webhookcfg.All(), webhook)
		queue.fill(n, "acme")
		stop := queue.run()
		requests := receivers.await(q.t, n, "acme")
		first, last := span(requests)
		stop()
		elapsed := last.Sub(first)
		rows = append(rows, []string{
			q.d.name, fmt.Sprintf("%s for a receiver of %v", grouped(n), receiverTime), seconds(elapsed), seconds(ideal),
			precise(ideal.Seconds() / elapsed.Seconds()), "≥ 0.95", precise(float64(len(requests)) / float64(n)), "1",
			queue.updates(), "1",
		})
	}
	return rows
}

// span returns when the first of the requests arrived, and when the last one was responded
// to.
func span(requests []request) (first, last time.Time) {
	first = requests[0].from
	for _, r := range requests {
		if r.from.Before(first) {
			first = r.from
		}
		if r.to.After(last) {
			last = r.to
		}
	}
	return first, last
}

// repair measures how long other clients wait while a client's receiver fails, and how long
// that client's backlog takes once its webhook is set again.
func (q queueTrial) repair() (p99 float64, row []string) {
	const receiverTime = 10 * time.Millisecond
	n, receivers, queue := q.scaled(20_000), newReceivers(q.t), newQueue(q.t, q.d)
	webhook := fmt.Sprint(receivers.URL, "/", receiverTime)
	ideal := time.Duration(n) * q.slots(webhook, receiverTime)
	queue.set("acme", webhookcfg.All(), receivers.URL+"/fail")
	queue.fill(n, "acme")
	stop := queue.run()
	p99 = q.probe(queue, receivers)
	start := time.Now()
	queue.set("acme", webhookcfg.All(), webhook)
	queue.box.Changed("acme", webhookcfg.All())
	first, last := span(receivers.await(q.t, n, "acme"))
	stop()
	return p99, []string{
		q.d.name, grouped(n) + " waiting, and its webhook is set again", seconds(first.Sub(start)), "≤ 1 s", seconds(last.Sub(start)), seconds(ideal),
		precise(last.Sub(start).Seconds() / ideal.Seconds()), "≤ 1.2",
	}
}

// recovery measures how long a backlog takes once its receiver works again, and nobody sets
// anything. The first delivery can't come before the end of the pause that the failures have
// brought about, so its budget starts there.
func (q queueTrial) recovery() (row []string) {
	const receiverTime, outage, pause = 10 * time.Millisecond, 3 * time.Second, 5 * time.Second
	n, receivers, queue := q.scaled(20_000), newReceivers(q.t), newQueue(q.t, q.d)
	webhook := fmt.Sprint(receivers.URL, "/outage/", receiverTime)
	ideal := time.Duration(n) * q.slots(webhook, receiverTime)
	receivers.isDown.Store(true)
	queue.set("acme", webhookcfg.All(), webhook)
	queue.fill(n, "acme")
	stop := queue.run()
	time.Sleep(outage)
	receivers.isDown.Store(false)
	// Those that failed wait for their retry.
	requests := receivers.await(q.t, n-2*receiverSlots, "acme")
	ended := receivers.lastFailure().Add(pause)
	first, last := span(requests)
	stop()
	return []string{
		q.d.name, grouped(n) + " waiting, and the pause ends", seconds(first.Sub(ended)), "≤ 1 s", seconds(last.Sub(ended)), seconds(ideal),
		precise(last.Sub(ended).Seconds() / ideal.Seconds()), "≤ 1.2",
	}
}

// probe makes changes for small clients, and returns the 99th percentile of the times from a
// commit to the arrival, in milliseconds.
func (q queueTrial) probe(queue *queue, receivers *receivers) (p99 float64) {
	clients := names("probe", probes)
	for _, client := range clients {
		queue.set(client, webhookcfg.All(), receivers.URL+"/1ms")
	}
	n, waits := q.scaled(500), []float64{}
	q.paced(n, probeEvery, func(i int) error { return queue.enqueue(clients[i%probes], i) })
	for i := range n {
		client, id := clients[i%probes], queuedID(clients[i%probes], i)
		await(q.t, "the delivery of "+id, func() bool {
			receivers.mu.Lock()
			defer receivers.mu.Unlock()
			return len(receivers.requests[client][id]) > 0
		})
		waits = append(waits, max(0, milliseconds(receivers.first(client, id).from.Sub(queue.committed[id]))))
	}
	return quantile(waits, 0.99)
}

// paced calls fn n times, with this time between two calls or more.
func (q queueTrial) paced(n int, every time.Duration, fn func(i int) error) {
	q.t.Helper()
	next := time.Now()
	for i := range n {
		if err := fn(i); err != nil {
			q.t.Fatal(err)
		}
		next = next.Add(every)
		time.Sleep(time.Until(next))
	}
}

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// waitTrial has the 99th percentiles of small clients' waits in milliseconds: when there's
// nothing else to deliver, and meanwhile.
type waitTrial struct {
	engine, flood, short, budget string
	quiet, meanwhile             float64
}

func (w waitTrial) row() []string {
	return []string{w.engine, w.flood, precise(w.quiet) + " ms", precise(w.meanwhile) + " ms", precise(w.meanwhile / w.quiet), w.budget}
}

// waits measures how long small clients wait while others hang or have backlogs. Failing is
// their wait while a receiver fails.
func (q queueTrial) waits(failing float64) []waitTrial {
	const hosts, messages = 40, 4 // of each client that hangs
	many, backlog := min(100, q.scaled(100)), q.scaled(500)
	quiet := q.meanwhile(func(*queue, *receivers) {})
	hanging := q.meanwhile(func(queue *queue, r *receivers) {
		clients := names("hang", many)
		for _, client := range clients {
			for n := range hosts * messages {
				queue.set(client, webhookcfg.Entity(queuedEntity(n)), r.named(fmt.Sprintf("h%d.%s", n%hosts, client))+"/hang")
			}
		}
		queue.fill(hosts*messages, clients...)
	})
	backlogs := q.meanwhile(func(queue *queue, r *receivers) {
		clients := names("backlog", 2*many)
		for _, client := range clients {
			queue.set(client, webhookcfg.All(), r.named(client)+"/200ms")
		}
		queue.fill(backlog, clients...)
	})
	budget := "≤ 3"
	if q.d.name == "SQLite" {
		budget = "≤ 5"
	}
	return []waitTrial{
		{q.d.name, fmt.Sprintf("%d clients with %d hosts each hang", many, hosts), "clients that hang", budget, quiet, hanging},
		{q.d.name, fmt.Sprintf("a receiver with %s waiting fails", grouped(q.scaled(20_000))), "a receiver that fails", budget, quiet, failing},
		{q.d.name, fmt.Sprintf("%d clients have backlogs of %d for receivers of 200ms", 2*many, backlog), "backlogs", budget, quiet, backlogs},
	}
}

// meanwhile measures the waits of small clients after others have enqueued.
func (q queueTrial) meanwhile(enqueue func(*queue, *receivers)) (p99 float64) {
	receivers, queue := newReceivers(q.t), newQueue(q.t, q.d)
	enqueue(queue, receivers)
	defer queue.run()()
	time.Sleep(q.turn * 5) // so that the others are under way
	return q.probe(queue, receivers)
}

// costs compares the CPU time from a change to its delivery with that of the bare parts.
func (q queueTrial) costs() (rows [][]string) {
	receiver := startChild(q.t, "-receive").line
	clients := names("client", 64)
	n := q.scaled(2000)
	asFast := func(fn func(i int) error) {
		var writers errgroup.Group
		writers.SetLimit(8)
		for i := range n {
			writers.Go(func() error { return fn(i) })
		}
		if err := writers.Wait(); err != nil {
			q.t.Fatal(err)
		}
	}
	paced := func(fn func(i int) error) { q.paced(n/4, 10*time.Millisecond, fn) }
	for _, pace := range []struct {
		name    string
		n       int
		changes func(fn func(i int) error)
	}{{"changes as fast as 8 writers can", n, asFast}, {"100 changes a second", n / 4, paced}} {
		queue := newQueue(q.t, q.d)
		for _, client := range clients {
			queue.set(client, webhookcfg.All(), receiver)
		}
		stop := queue.run()
		before := q.d.cpu()
		pace.changes(func(i int) error { return queue.enqueue(clients[i%len(clients)], i) })
		await(q.t, "the end of all notifications", func() bool { return queue.ended.Load() >= int64(pace.n) })
		ours := q.d.cpu() - before
		stop()

		table := q.bareTable(queue)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
		post, err := signedPosts(client, receiver)
		if err != nil {
			q.t.Fatal(err)
		}
		before = q.d.cpu()
		pace.changes(func(i int) error {
			if err := q.d.inTransaction(func(tx *sql.Tx) error { return table.insert(tx, i) }); err != nil {
				return err
			}
			return post(i)
		})
		reference := q.d.cpu() - before
		client.CloseIdleConnections()
		each := func(used time.Duration) string { return inMilliseconds(used/time.Duration(pace.n)) + " ms" }
		rows = append(rows, []string{q.d.name, pace.name, each(ours), each(reference), precise(ours.Seconds() / reference.Seconds()), "≤ 3"})
	}
	return rows
}

// bare is a table with the columns of the outbox's table, and nothing but a primary key.
type bare struct{ statement string }

func (q queueTrial) bareTable(queue *queue) bare {
	q.t.Helper()
	name, outbox := queue.prefix+"bare", queue.prefix+"outbox_message"
	create, values := "", "?, ?, ?, 0, 0, ?, 0, 0, '', 'application/json', ?"
	if q.d.name == "PostgreSQL" {
		create = "CREATE TABLE " + name + " (LIKE " + outbox + " INCLUDING IDENTITY INCLUDING DEFAULTS, PRIMARY KEY (seq))"
		values = "$1, $2, $3, 0, 0, $4, 0, 0, '', 'application/json', $5"
	} else {
		if err := q.d.QueryRow("SELECT sql FROM sqlite_schema WHERE name = ?", outbox).Scan(&create); err != nil {
			q.t.Fatal(err)
		}
		create = strings.NewReplacer(outbox, name, ",\n  UNIQUE (client, id)", "").Replace(create)
	}
	if _, err := q.d.Exec(create); err != nil {
		q.t.Fatal(err)
	}
	return bare{"INSERT INTO " + name + " (client, entity, id, state, due, enqueued, attempts, status, reason, content_type, body) VALUES (" + values + ")"}
}

func (b bare) insert(tx *sql.Tx, n int) error {
	_, err := tx.Exec(b.statement, []byte("client0"), []byte(queuedEntity(n)), queuedID("client0", n), time.Now().UnixMicro(), notification)
	return err
}

// enqueues compares transactions with Enqueue and with the bare INSERT.
func (q queueTrial) enqueues() []string {
	n, queue := q.scaled(400), newQueue(q.t, q.d)
	table := q.bareTable(queue)
	var with, without []float64
	measure := func(round int, insert func(tx *sql.Tx, n int) error) float64 {
		start := time.Now()
		for i := range n {
			if err := q.d.inTransaction(func(tx *sql.Tx) error { return insert(tx, round*n+i) }); err != nil {
				q.t.Fatal(err)
			}
		}
		return milliseconds(time.Since(start)) / float64(n)
	}
	for round := range q.rounds {
		with = append(with, measure(round, func(tx *sql.Tx, i int) error { return queue.add(tx, "client0", i) }))
		without = append(without, measure(round, table.insert))
	}
	return []string{q.d.name, "one row", precise(median(with)) + " ms", precise(median(without)) + " ms", spread(quotients(with, without)), "≤ 1.3"}
}

// rest measures the queue after a few changes, with nothing to do.
func (q queueTrial) rest() []string {
	receivers, queue := newReceivers(q.t), newQueue(q.t, q.d)
	defer queue.run()()
	q.probe(queue, receivers)
	time.Sleep(q.turn * 10) // so that it finds that there's nothing to do
	idle := 40 * q.turn
	var statements int64
	if q.d.statements != nil {
		statements = q.d.statements.Load()
	}
	before := cpuTime()
	time.Sleep(idle)
	cores := (cpuTime() - before).Seconds() / idle.Seconds()
	executed := "–"
	if q.d.statements != nil {
		executed = fmt.Sprintf("%.1f", float64(q.d.statements.Load()-statements)/idle.Seconds())
	}
	return []string{q.d.name, fmt.Sprintf("%.3f", cores), "≤ 0.01", executed, "≤ 10"}
}

// kill measures how soon a process goes on with what a killed one was sending, and how many
// messages are sent twice.
func (q queueTrial) kill() []string {
	const batch = 100 * time.Millisecond // in which outcomes are written
	receivers, queue, clients, n := newReceivers(q.t), newQueue(q.t, q.d), names("client", 10), max(q.scaled(600), 300)
	args := []string{"-send", q.d.dsn, "-prefix", queue.prefix, "-webhook", receivers.URL + "/50ms"}
	killed := startChild(q.t, args...)
	queue.fill(n, clients...)
	for _, client := range clients {
		receivers.await(q.t, receiverSlots, client)
	}
	startChild(q.t, args...)
	time.Sleep(5 * q.turn) // so that it's running, with nothing to do
	at := time.Now()
	if err := killed.Process.Kill(); err != nil {
		q.t.Fatal(err)
	}
	var longest time.Duration
	duplicates, most := 0, 0
	for _, client := range clients {
		var again time.Time
		requests := receivers.await(q.t, n, client)
		duplicates += len(requests) - n
		for _, r := range requests {
			if r.from.Before(at) && r.to.After(at.Add(-batch)) {
				most++
			}
			if r.from.After(at.Add(batch)) && (again.IsZero() || r.from.Before(again)) {
				again = r.from
			}
		}
		if again.IsZero() {
			q.t.Fatalf("all messages of %s were delivered when the process was killed", client)
		}
		longest = max(longest, again.Sub(at))
	}
	return []string{fmt.Sprintf("%d, each with %d waiting", len(clients), n), seconds(longest), "≤ 5 s", fmt.Sprint(duplicates), fmt.Sprintf("≤ %d", most)}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
