package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestClock sets the clock of the database while processes send, and while one is killed. The
// wires add to the time in the statements, since a server's own clock can't be set by a test.
func TestClock(t *testing.T) {
	t.Parallel()
	now := map[string]string{"SQLite": dialect.SQLite.Now, "PostgreSQL": dialect.PostgreSQL.Now, "MariaDB": dialect.MySQL.Now}
	var all together
	for _, e := range engines {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			all.start(t, fmt.Sprint(e.name, " ", step), func(t *testing.T) {
				const n = 200
				f := newFixture(t, e, nil, nil)
				var offset atomic.Int64
				f.respond = func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }
				f.set("a", "/")
				shifted := func(text string) string {
					return strings.ReplaceAll(text, now[e.name], fmt.Sprintf("(%s + %d)", now[e.name], offset.Load()))
				}
				var isDead atomic.Bool
				dying, w := f.wired(func(call) (before, after error) {
					if isDead.Load() {
						return errKilled, nil
					}
					return nil, nil
				})
				w.rewrite = shifted
				living, w := f.wired(nil)
				w.rewrite = shifted
				first, second := f.peer(e, dying, outbox.Options{}), f.peer(e, living, outbox.Options{})
				stopFirst := f.runBox(first)
				f.fill("a", n, "m")
				f.await(50, 20*time.Second)
				f.runBox(second)
				offset.Store(step.Microseconds())
				f.await(n, 20*time.Second)
				f.awaitEnds(outbox.Delivered, n)
				if got := f.arrived(); got != n {
					t.Errorf("%d arrivals, want %d", got, n)
				}
				f.fill("a", n, "after")
				f.await(n+50, 20*time.Second)
				offset.Add(step.Microseconds())
				before := f.arrived()
				killed := time.Now()
				isDead.Store(true)
				go stopFirst()
				f.await(2*n, 20*time.Second)
				t.Logf("%d of %d arrived before the kill, the last %v after it, %d twice", before-n, n, time.Since(killed), f.arrived()-2*n)
				if twice := f.arrived() - 2*n; twice > 64 {
					t.Errorf("%d arrived twice", twice)
				}
			})
		}
	}
	all.wait()
}

// arrived returns how many requests arrived.
func (f *fixture) arrived() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.order)
}

// TestFailover kills a server whose standby lagged behind. A notification is lost together with
// the change that it's about. The numbers of lost notifications are used again, while attempts
// of the lost ones are under way, and the new ones are sent. A process that lost a client in
// the failover notices.
func TestFailover(t *testing.T) {
	t.Parallel()
	pair := engine.PostgreSQLPair(t)
	e := engineCase{"PostgreSQL", engines[1].dialect, "pgx", func(testing.TB) string { return pair.DSN() + "&synchronous_commit=local" }}
	f := newFixture(t, e, nil, nil)
	release := make(chan struct{})
	released := sync.OnceFunc(func() { close(release) })
	t.Cleanup(released)
	f.respond = func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Webhook-Id"), "hang") {
			<-release
		}
	}
	f.set("a", "/")
	f.set("c", "/")
	first, second := f.peer(e, open(t, e.driver, e.dsn(t)), outbox.Options{}), f.peer(e, open(t, e.driver, e.dsn(t)), outbox.Options{})
	f.runBox(first)
	change := func(client string, ids ...string) {
		t.Helper()
		tx, err := f.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if _, err := tx.Exec("INSERT INTO module VALUES ($1)", id); err != nil {
				t.Fatal(err)
			}
			if err := f.box.Enqueue(t.Context(), tx, notification(client, id, id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		first.Committed(client)
	}
	names := func(name string, n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprint(name, i))
		}
		return ids
	}
	if _, err := f.db.Exec("CREATE TABLE module (id text)"); err != nil {
		t.Fatal(err)
	}
	change("a", names("old", 20)...)
	f.awaitEnds(outbox.Delivered, 20)
	if _, err := open(t, e.driver, pair.DSN()+"&synchronous_commit=remote_apply").Exec("INSERT INTO module VALUES ('all')"); err != nil {
		t.Fatal(err)
	}

	pair.Detach()
	change("a", names("lost", 50)...)
	change("c", "lost")
	f.awaitEnds(outbox.Delivered, 71)
	change("a", names("hang", 50)...)
	f.await(20+51+4, 10*time.Second)
	var last, reused int64
	if err := f.db.QueryRow("SELECT MAX(seq) FROM " + f.prefix + "outbox_message").Scan(&last); err != nil {
		t.Fatal(err)
	}
	if err := pair.Failover(); err != nil {
		t.Fatal(err)
	}
	for f.db.Ping() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	f.runBox(second)
	change("a", names("new", 100)...)
	change("c", names("c", 10)...)
	if err := f.db.QueryRow("SELECT COUNT(*) FROM "+f.prefix+"outbox_message WHERE seq <= $1 AND id LIKE 'new%'", last).Scan(&reused); err != nil {
		t.Fatal(err)
	}
	f.await(20+51+4+1, 20*time.Second)
	released()
	f.await(20+51+4+100+10, 20*time.Second)
	for i := range 30 { // it notices, although its client is never quiet
		change("c", fmt.Sprint("soon", i))
		time.Sleep(100 * time.Millisecond)
	}
	for i := range 20 {
		change("c", names(fmt.Sprint("later", i, "-"), 5)...)
	}
	f.await(20+51+4+100+10+30+100, 20*time.Second)
	f.awaitEnds(outbox.Delivered, 20+100+10+30+100)
	var changes, lost int
	if err := f.db.QueryRow("SELECT COUNT(*), COUNT(*) FILTER (WHERE id LIKE 'lost%' OR id LIKE 'hang%') FROM module").Scan(&changes, &lost); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	twice := map[bool]int{}
	for id, at := range f.arrivals {
		if len(at) > 1 {
			twice[strings.HasPrefix(id, "later")]++
		}
	}
	t.Logf("%d numbers were used again; %d arrived twice right after the failover", reused, twice[false])
	if reused == 0 || lost > 0 || changes != 1+20+100+10+30+100 {
		t.Errorf("%d numbers were used again, %d lost changes are there, of %d", reused, lost, changes)
	}
	if twice[true] > 0 {
		t.Errorf("%d arrived twice, long after the failover", twice[true])
	}
}

// TestKilledServer kills the server at random moments while notifications are enqueued and sent.
// What was acknowledged arrives. Processes that live through it remember what they've sent, so
// nothing arrives twice unless one of them loses its lease.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	var all together
	for name, own := range map[string]func(testing.TB) *engine.Server{"PostgreSQL": postgreSQL.Own, "MariaDB": mariaDB.Own} {
		all.start(t, name, func(t *testing.T) {
			server := own(t)
			server.SkipIfExternal(t)
			var e engineCase
			for _, known := range engines {
				if known.name == name {
					e = known
				}
			}
			e.dsn = func(testing.TB) string { return server.DSN() }
			f := newFixture(t, e, nil, nil)
			clients := []string{"a", "b", "c"}
			for _, client := range clients {
				f.set(client, "/")
			}
			f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
			f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
			f.awaitProcesses(2)
			alive := f.processes()
			enqueued, stop := f.enqueueAll(clients)
			for range *rounds {
				before, more := f.arrived(), 10+rand.IntN(100)
				for f.arrived() < before+more {
					time.Sleep(time.Millisecond)
				}
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			f.await(enqueued(), time.Minute)
			f.awaitNoneWaiting()
			f.mu.Lock()
			defer f.mu.Unlock()
			t.Logf("%d kills: %d notifications acknowledged, %d arrived, %d of them twice", *rounds, enqueued(), len(f.arrivals), len(f.order)-len(f.arrivals))
			most := 0
			if !slices.Equal(f.processes(), alive) { // a busy machine starts the server so late that a lease ends
				// 4 requests of each client were under way, and 25 of each are enqueued in a tenth of a second.
				most = len(clients) * (4 + 25) * *rounds
			}
			if twice := len(f.order) - len(f.arrivals); twice > most {
				t.Errorf("%d arrived twice, want at most %d", twice, most)
			}
		})
	}
	all.wait()
}

// processes returns the numbers of the processes that are running.
func (f *fixture) processes() (ids []int64) {
	f.t.Helper()
	rows, err := f.db.Query("SELECT id FROM " + f.prefix + "outbox_process ORDER BY id")
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestNumberUsedAgain: while an attempt is under way, the tables lose its notification, and
// another one gets its number. What became of the lost one isn't written to the new one, which
// is sent.
func TestNumberUsedAgain(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			release := make(chan struct{})
			released := sync.OnceFunc(func() { close(release) })
			t.Cleanup(released)
			f.respond = func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Webhook-Id") == "lost" {
					<-release
				}
			}
			f.set("a", "/")
			f.run()
			f.enqueue("a", "e", "lost")
			f.await(1, 10*time.Second)
			f.exec("UPDATE {message} SET id = 'new', enqueued = enqueued + 1")
			released()
			for deadline := time.Now().Add(10 * time.Second); f.arrived() < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				f.box.Committed("a") // nobody looks for such a number, but who enqueues says so
			}
			f.awaitEnds(outbox.Delivered, 1)
			if got := f.arrived(); got != 2 {
				t.Errorf("%d arrivals, want 2", got)
			}
		})
	}
}

// TestSilentConnections: the network loses what the server responds on some connections, and
// doesn't say so. A process that waits for it goes on with others.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	server := postgreSQL.Get(t)
	e := engines[1]
	f := newFixture(t, e, nil, nil)
	f.set("a", "/")
	proxy := engine.NewProxy(t, server.Addr())
	f.runBox(f.peer(e, open(t, e.driver, server.Via(proxy.Addr())), outbox.Options{}))
	f.enqueue("a", "e", "before")
	f.await(1, 20*time.Second)
	const silent = 3
	proxy.Lose(engine.Responses, engine.Silence, func(n int) bool { return n <= silent })
	for proxy.Lost() < silent {
		time.Sleep(10 * time.Millisecond)
	}
	f.enqueue("a", "e", "after")
	f.await(2, 40*time.Second)
}
