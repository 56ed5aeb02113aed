package enginetest

import (
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

var (
	processHistories = flag.Int("processhistories", 3, "how many random histories of processes to run")
	onlyHistory      = flag.Int("only", -1, "run only this history of processes")
	isTraced         = flag.Bool("traced", false, "log what happens")
)

// soon is how long anything may take that can go, on processes that work. After a set, an attempt at
// the former webhook can take hangsFor.
const (
	soon     = 8 * time.Second
	hangsFor = 15 * time.Second
)

// deeds are what happens in a history.
type deeds struct {
	*world
	processes []*process
	faultless time.Time // when the last fault of a process was over
	hostBad   map[string]time.Time
	setAt     map[string]time.Time // when the webhook of a client's entity was set to another URL
	gaps      []gap                // transactions that are open
}

// gap is a number whose transaction is open since a time.
type gap struct {
	number int64
	since  time.Time
}

var (
	clients  = []string{"acme", "blue", "cyan"}
	entities = []string{"e0", "e1", "e2", "e3", "e4"}
	hosts    = []string{"a", "b", "c", "d"}
)

func (d *deeds) trace(format string, args ...any) {
	if *isTraced {
		d.t.Logf("%s "+format, append([]any{time.Now().Format("04:05.000")}, args...)...)
	}
}

func one[T any](d *deeds, of []T) T { return of[d.random.IntN(len(of))] }

// change sets or unsets a webhook, and says so to one of the processes.
func (d *deeds) change(name, entity, host string) {
	keys := []string{entity}
	if entity == "" {
		keys = entities
	}
	before := make(map[string]line.Hook)
	for _, e := range keys {
		before[e] = d.hook(name, e)
	}
	if host == "" {
		d.unset(name, entity)
	} else {
		d.set(name, entity, host)
	}
	for _, e := range keys {
		if after := d.hook(name, e); after.Host != before[e].Host || after.Override != before[e].Override {
			d.setAt[name+"/"+e] = time.Now()
		}
	}
	d.trace("%s/%s leads to %q", name, entity, host)
	one(d, d.processes).Changed(name, entity)
}

// again sends again what has ended.
func (d *deeds) again(name string) {
	d.mu.Lock()
	chosen := make(map[*sent]string)
	for _, s := range d.sent {
		if s.client == name && s.ended != "" && d.random.IntN(3) == 0 {
			chosen[s] = s.ended
			s.ended, s.committed = "", time.Now()
		}
	}
	d.mu.Unlock() // before the statements, which may wait for processes that want the lock
	n, tables := 0, d.tables(d.db)
	err := tables.Transaction(d.t.Context(), func(tx *sql.Tx) error {
		for s, ended := range chosen {
			result, err := tx.Exec(`UPDATE wh_outbox_message SET state = 0, grp = 1, due = bubble_now(), attempts = 0, status = 0, reason = '', resent = bubble_now() WHERE id = ? AND state <> 0`, s.id)
			if err != nil {
				return err
			}
			if rows, _ := result.RowsAffected(); rows > 0 {
				n++
			} else {
				d.ended(s, ended)
			}
		}
		return tables.Wake(d.t.Context(), tx, name)
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.trace("%d of %s are sent again", n, name)
	if d.random.IntN(2) == 0 { // otherwise a poll finds it
		one(d, d.processes).Woken(name)
	}
}

func (d *deeds) faulty(until time.Duration) {
	if at := time.Now().Add(until); at.After(d.faultless) {
		d.faultless = at
	}
	d.mayRepeat = true
}

// fault makes something go wrong with a process.
func (d *deeds) fault() {
	p := one(d, d.processes)
	switch d.random.IntN(6) {
	case 0:
		d.trace("a process is killed")
		d.faulty(0)
		p.kill()
		d.processes = slices.DeleteFunc(d.processes, func(q *process) bool { return q == p })
	case 1:
		if len(d.processes) > 1 {
			d.trace("a process ends")
			d.faulty(0) // its hanging attempts take their time
			p.end()
			d.processes = slices.DeleteFunc(d.processes, func(q *process) bool { return q == p })
		}
	case 2:
		frozen := time.Duration(1+d.random.IntN(8)) * time.Second
		d.trace("a process freezes for %v", frozen)
		d.faulty(frozen)
		thaw := p.faults.freeze()
		time.AfterFunc(frozen, thaw)
	case 3, 4:
		isDone, until := d.random.IntN(2) == 0, time.Duration(d.random.IntN(4000))*time.Millisecond
		d.trace("commits of a process fail, done: %v, for %v", isDone, until)
		d.faulty(until)
		p.faults.mu.Lock()
		p.faults.commit = func() (bool, error) { return isDone, errCut }
		p.faults.mu.Unlock()
		time.AfterFunc(until, func() {
			p.faults.mu.Lock()
			p.faults.commit = nil
			p.faults.mu.Unlock()
		})
	default:
		if len(d.processes) < 3 {
			d.trace("a process comes")
			d.processes = append(d.processes, d.start(queue.Options{Clients: 2 + d.random.IntN(4)}))
		}
	}
	if len(d.processes) == 0 {
		d.processes = append(d.processes, d.start(queue.Options{Clients: 3}))
	}
}

// checkSoon checks that what could go has gone.
func (d *deeds) checkSoon() {
	now := time.Now()
	if now.Sub(d.faultless) < 2*soon {
		return
	}
	d.mu.Lock()
	waiting := make(map[string]int)
	var late []*sent
	for _, s := range d.sent {
		if s.ended == "" {
			waiting[s.client]++
			late = append(late, s)
		}
	}
	d.mu.Unlock()
	for _, s := range late {
		h, set := d.hook(s.client, s.entity), d.setAt[s.client+"/"+s.entity]
		bad, wasBad := d.hostBad[h.Host]
		isClean := !wasBad || set.After(bad) && set.Sub(bad) > 2*time.Minute
		since := s.committed
		if late := set.Add(hangsFor); late.After(since) {
			since = late
		}
		if isClean && now.Sub(since) > soon && waiting[s.client] < 150 {
			d.show()
			d.t.Fatalf("%s of %s/%s waits since %v for %q, which works", s.id, s.client, s.entity, now.Sub(since), h.Host)
		}
	}
}

// late commits a transaction that was open while others were committed, or opens one.
func (d *deeds) late() {
	if len(d.gaps) > 0 && d.random.IntN(2) == 0 {
		opened := d.gaps[0]
		number := opened.number
		d.gaps = d.gaps[1:]
		d.mu.Lock()
		s := &sent{client: one(d, clients), entity: one(d, entities), seq: len(d.sent) + 1, committed: time.Now()}
		s.id = fmt.Sprint("m", s.seq)
		if time.Since(opened.since) > 45*time.Second {
			s.committed = s.committed.Add(90 * time.Second) // the survey finds it
		}
		d.sent[s.id] = s
		d.mu.Unlock()
		if _, err := d.db.Exec(`INSERT INTO wh_outbox_message (seq, client, entity, id, enqueued, content_type, body) VALUES (?, ?, ?, ?, bubble_now(), '', 'x')`, number, []byte(s.client), []byte(s.entity), s.id); err != nil {
			d.t.Fatal(err)
		}
		d.trace("%s of %s/%s is committed late, as %d", s.id, s.client, s.entity, number)
		return
	}
	var number int64
	tx, err := d.db.Begin()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := tx.QueryRow(`UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'wh_outbox_message' RETURNING seq`).Scan(&number); err == nil {
		d.gaps = append(d.gaps, gap{number, time.Now()})
	}
	if err := tx.Commit(); err != nil {
		d.t.Fatal(err)
	}
}

// TestProcessHistories runs random histories of processes that come, go, freeze and are killed, of
// commits that fail or are lost, of webhooks that are set and fail, and of notifications that are sent
// again. What can go goes soon, limits hold over all processes, and in the end everything has ended.
func TestProcessHistories(t *testing.T) {
	t.Parallel()
	for seed := range *processHistories {
		if *onlyHistory >= 0 {
			seed = *onlyHistory
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runProcesses(t, uint64(seed)) })
		})
		if *onlyHistory >= 0 {
			break
		}
	}
}

func runProcesses(t *testing.T, seed uint64) {
	d := &deeds{world: newWorld(t, seed), hostBad: make(map[string]time.Time), setAt: make(map[string]time.Time)}
	defer func() {
		for _, p := range d.processes {
			p.end()
		}
		d.db.Close()
	}()
	for _, name := range clients {
		d.set(name, "", one(d, hosts))
		for _, e := range entities {
			d.setAt[name+"/"+e] = time.Now()
		}
	}
	d.processes = append(d.processes, d.start(queue.Options{Clients: 3}))
	isFaulty := seed%3 != 0
	if seed%4 != 0 {
		d.takes = time.Duration(d.random.IntN(8000)) * time.Microsecond
	}
	for range 60 {
		switch n := d.random.IntN(20); n {
		case 0, 1:
			d.change(one(d, clients), one(d, entities), one(d, hosts))
		case 2:
			d.change(one(d, clients), "", one(d, hosts))
		case 3:
			d.change(one(d, clients), one(d, entities), "")
		case 4, 5, 6:
			host := one(d, hosts)
			r := receiver{takes: time.Duration(1+d.random.IntN(60)) * time.Millisecond}
			switch d.random.IntN(7) {
			case 0:
				r.fails = line.Failure
			case 1:
				r.fails = line.NoConnection
			case 2:
				r.hangs = true
			case 3:
				r.asks, r.fails = time.Duration(d.random.IntN(20))*time.Second, line.Failure
			}
			d.receives(host, r)
			d.trace("%s: %+v", host, r)
			if r.fails != line.NoEffect || r.hangs {
				d.hostBad[host] = time.Now().Add(time.Hour)
			} else if _, ok := d.hostBad[host]; ok {
				d.hostBad[host] = time.Now()
			}
		case 7:
			d.again(one(d, clients))
		case 8, 9:
			d.late()
		case 10, 11:
			if isFaulty {
				d.fault()
			}
		default:
			for range 1 + d.random.IntN(3) {
				name, entity, n := one(d, clients), one(d, entities), 1<<d.random.IntN(5)
				d.enqueue(name, entity, n)
				d.trace("%d for %s/%s", n, name, entity)
			}
		}
		time.Sleep(time.Duration(d.random.IntN(6000)) * time.Millisecond)
		synctest.Wait()
		d.checkSoon()
	}
	for len(d.gaps) > 0 {
		d.late()
	}
	for _, host := range hosts {
		d.receives(host, receiver{takes: time.Millisecond})
	}
	d.within(25 * time.Minute)
	calls := int64(0)
	for _, p := range d.processes {
		calls += p.faults.calls.Load()
	}
	t.Logf("%d notifications, %d attempts, %v, %d statements of the last processes", len(d.sent), len(d.arrivals), time.Since(time.Unix(946684800, 0)), calls)
}
