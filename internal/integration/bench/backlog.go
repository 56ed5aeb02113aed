package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// These names decide which shards of examples/service the clients are in.
var (
	flooding = []string{"flood0", "flood1", "flood2"} // 1, 6, 3
	alone    = []string{"small0", "small1", "small2", "small3", "small4"}
	sharing  = []string{"small5", "small6"} // 3, 6
)

const (
	receiverTime  = 50 * time.Millisecond
	receiverSlots = 4 // the default of deliver.Options.PerReceiver
	smallMessages = 300
	smallInterval = 100 * time.Millisecond
)

// backlogs measures examples/service with its defaults while clients have backlogs.
func (s settings) backlogs(t *testing.T, r *report) error {
	program, err := buildService(t.TempDir())
	if err != nil {
		return err
	}
	engines := []backlogTrial{{settings: s, t: t, program: program, engine: "SQLite"}}
	if s.shared {
		engines = append(engines, backlogTrial{settings: s, t: t, program: program, engine: "PostgreSQL", server: engine.PostgreSQL(t).DSN()})
	}
	var speed, waits [][]string
	var trials []waitTrial
	for _, trial := range engines {
		row, err := trial.oneBacklog()
		if err != nil {
			return fmt.Errorf("one backlog: %w", err)
		}
		speed = append(speed, row)
		neighbours, err := trial.neighbours()
		if err != nil {
			return fmt.Errorf("neighbours: %w", err)
		}
		trials = append(trials, neighbours...)
	}
	for _, trial := range trials {
		waits = append(waits, trial.row())
	}
	last := engines[len(engines)-1]
	recovery, err := last.recovery()
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	repair, err := last.repair()
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	r.section("Backlogs", fmt.Sprintf(`[examples/service](../../../examples/service) with its defaults. A receiver takes
%v for a request, and gets %d at a time. The ideal is the time if it's never idle. A
small client makes %d changes, one every %v.`, receiverTime, receiverSlots, last.scaled(smallMessages), smallInterval))
	r.table([]string{"queue on", "one client's backlog of", "time", "ideal", "ratio", "budget", "deferrals per message", "budget"}, speed...)
	r.table([]string{"queue on", "p99 from a change to its delivery, for small clients", "quiet", "meanwhile", "ratio", "budget"}, waits...)
	r.plot("waits.svg", plotWaits(trials))
	r.table([]string{"after an outage, on " + last.engine, "time", "ideal", "budget"}, recovery, repair)
	return nil
}

// backlogTrial measures examples/service on an engine.
type backlogTrial struct {
	settings
	t       *testing.T
	program string
	engine  string
	server  string // empty for SQLite
}

// scaled returns n, or much less in a quick run.
func (b backlogTrial) scaled(n int) int { return max(n*b.loaded/full.loaded, 2*receiverSlots) }

// newStore returns a new database.
func (b backlogTrial) newStore() string {
	if b.server == "" {
		return "sqlite:" + filepath.Join(b.t.TempDir(), "backlog.db")
	}
	return newDatabase(b.t, b.server)
}

// oneBacklog measures how fast the backlog of one client is delivered.
func (b backlogTrial) oneBacklog() (row []string, err error) {
	n, store, r := b.scaled(1000), b.newStore(), newReceivers()
	defer r.Close()
	if err := b.fill(store, r, map[string]int{"acme": n}); err != nil {
		return nil, err
	}
	p, err := startService(b.program, store)
	if err != nil {
		return nil, err
	}
	defer p.end()
	if err := r.await("acme", n); err != nil {
		return nil, err
	}
	elapsed, left := r.span("acme")
	ideal := receiverTime * time.Duration(left) / receiverSlots
	if err := errors.Join(p.stop(), p.wait()); err != nil { // so that River writes everything that it still has in memory
		return nil, err
	}
	var deferrals float64
	err = onStore(store, func(db *sql.DB) error {
		return db.QueryRow("SELECT coalesce(sum(CAST(metadata ->> 'snoozes' AS integer)), 0) FROM river_job").Scan(&deferrals)
	})
	return []string{
		b.engine, grouped(n), seconds(elapsed), seconds(ideal), precise(elapsed.Seconds() / ideal.Seconds()), "≤ 1.15",
		precise(deferrals / float64(n)), "≤ 2",
	}, err
}

// neighbours measures how long small clients wait for their notifications while others have
// backlogs, and while a receiver with a large backlog is dead.
func (b backlogTrial) neighbours() (trials []waitTrial, err error) {
	store, r := b.newStore(), newReceivers()
	defer r.Close()
	all := append(append([]string(nil), alone...), sharing...)
	quiet, err := b.smallWaits(store, r, all)
	if err != nil {
		return nil, err
	}
	few, many := b.scaled(3000), b.scaled(100_000)
	floods := map[string]int{flooding[0]: few, flooding[1]: few, flooding[2]: few}
	store, r = b.newStore(), newReceivers()
	defer r.Close()
	if err := b.fill(store, r, floods); err != nil {
		return nil, err
	}
	busy, err := b.smallWaits(store, r, all)
	if err != nil {
		return nil, err
	}
	store, r = b.newStore(), newReceivers()
	defer r.Close()
	const first = 600 // enough to fill the shard
	if err := b.fill(store, r, map[string]int{flooding[1]: first}); err != nil {
		return nil, err
	}
	if err := multiply(store, many-first); err != nil {
		return nil, err
	}
	r.behave(flooding[1], func(http.ResponseWriter) { panic(http.ErrAbortHandler) })
	dead, err := b.smallWaits(store, r, all)
	if err != nil {
		return nil, err
	}
	three := fmt.Sprintf("three clients with backlogs of %s", grouped(few))
	for _, flood := range []struct {
		name, short, budget string
		clients             []string
		meanwhile           waits
	}{
		{three, "three backlogs", "≤ 3", alone, busy},
		{three + ", in a shard with one of them", "shared shard", "≤ 2 s", sharing, busy},
		{"a backlog of " + grouped(many) + " for a dead receiver", "a dead receiver", "≤ 1 s", all, dead},
	} {
		trials = append(trials, waitTrial{b.engine, flood.name, flood.short, flood.budget, quiet.p99(flood.clients), flood.meanwhile.p99(flood.clients)})
	}
	return trials, nil
}

// waitTrial has the 99th percentiles of small clients' waits in milliseconds: when there's
// nothing else to deliver, and during a flood.
type waitTrial struct {
	engine, flood, short, budget string
	quiet, meanwhile             float64
}

func (w waitTrial) row() []string {
	return []string{w.engine, w.flood, rounded(w.quiet) + " ms", rounded(w.meanwhile) + " ms", precise(w.meanwhile / w.quiet), w.budget}
}

// recovery measures how long a backlog takes after an outage.
func (b backlogTrial) recovery() (row []string, err error) {
	n, outage := b.scaled(3000), 30*time.Second*b.turn/full.turn
	store, r := b.newStore(), newReceivers()
	defer r.Close()
	if err := b.fill(store, r, map[string]int{"acme": n}); err != nil {
		return nil, err
	}
	r.behave("acme", fail)
	p, err := startService(b.program, store)
	if err != nil {
		return nil, err
	}
	defer p.end()
	time.Sleep(outage)
	_, left := r.span("acme")
	start := time.Now()
	r.behave("acme", work)
	if err := r.await("acme", n); err != nil {
		return nil, err
	}
	elapsed, ideal := time.Since(start), receiverTime*time.Duration(n-left)/receiverSlots
	return []string{
		fmt.Sprintf("a backlog of %s, once the receiver works again after %v of status 500", grouped(n), outage),
		seconds(elapsed), seconds(ideal), fmt.Sprintf("≤ 1.5 × ideal = %s", seconds(ideal*3/2)),
	}, nil
}

// repair sets a webhook on another host while its receiver is paused. It measures how soon
// the first notification arrives there.
func (b backlogTrial) repair() (row []string, err error) {
	n := b.scaled(1000)
	store, r, other := b.newStore(), newReceivers(), newReceivers()
	defer r.Close()
	defer other.Close()
	if err := b.fill(store, r, map[string]int{"acme": n}); err != nil {
		return nil, err
	}
	failures := make(chan struct{}, n)
	r.behave("acme", func(w http.ResponseWriter) { fail(w); failures <- struct{}{} })
	p, err := startService(b.program, store)
	if err != nil {
		return nil, err
	}
	defer p.end()
	for range 6 { // five failures start the pause, and another one prolongs it
		<-failures
	}
	start := time.Now()
	if err := p.set("acme", other.URL+"/acme"); err != nil {
		return nil, err
	}
	if err := other.await("acme", 1); err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("the first of %s messages behind a pause, once the client sets another URL", grouped(n)), seconds(time.Since(start)), "–", "≤ 2 s"}, nil
}

// fill leaves this many notifications of each client in a store. Nearly all of them wait,
// because each queue has just one worker, and that one waits for its receiver until the
// process ends.
func (b backlogTrial) fill(store string, r *receivers, notifications map[string]int) error {
	release := make(chan struct{})
	for client := range notifications {
		r.behave(client, func(w http.ResponseWriter) { <-release; w.WriteHeader(http.StatusNoContent) })
	}
	p, err := startService(b.program, store, "-migrate", "-workers", "1", "-timeout", "30s")
	if err != nil {
		close(release)
		return err
	}
	defer p.end()
	var clients errgroup.Group
	for client, n := range notifications {
		clients.Go(func() error { return p.fill(client, r.URL+"/"+client, n) })
	}
	err = errors.Join(clients.Wait(), p.stop())
	close(release)
	err = errors.Join(err, p.wait())
	for client := range notifications {
		r.behave(client, work)
	}
	return err
}

// multiply adds n copies of a waiting notification to its queue.
func multiply(store string, n int) error {
	numbers := "SELECT i FROM generate_series(1, $1) AS i"
	if strings.HasPrefix(store, "sqlite:") {
		numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n"
	}
	return onStore(store, func(db *sql.DB) error {
		_, err := db.Exec(`INSERT INTO river_job (args, kind, max_attempts, queue, state)
SELECT args, kind, max_attempts, queue, 'available' FROM river_job, (`+numbers+`) AS numbers
WHERE id = (SELECT max(id) FROM river_job WHERE state = 'available')`, n)
		return err
	})
}

// onStore calls fn with the database of examples/service.
func onStore(store string, fn func(*sql.DB) error) error {
	driver, source := "pgx", store
	if file, ok := strings.CutPrefix(store, "sqlite:"); ok {
		driver, source = "sqlite", file
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// waits has the waits of each client's notifications, in milliseconds.
type waits map[string][]float64

func (w waits) p99(clients []string) float64 {
	var all []float64
	for _, client := range clients {
		all = append(all, w[client]...)
	}
	return quantile(all, 0.99)
}

// smallWaits runs the service until the small clients have their notifications.
func (b backlogTrial) smallWaits(store string, r *receivers, clients []string) (waits, error) {
	n := b.scaled(smallMessages)
	p, err := startService(b.program, store, "-migrate")
	if err != nil {
		return nil, err
	}
	defer p.end()
	changed := make(map[string][]time.Time)
	for _, client := range clients {
		r.behave(client, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) })
		if err := p.set(client, r.URL+"/"+client); err != nil {
			return nil, err
		}
		changed[client] = make([]time.Time, n)
	}
	var callers errgroup.Group
	for _, client := range clients {
		callers.Go(func() error {
			for i := range n {
				changed[client][i] = time.Now()
				if err := p.callAs(client, http.MethodPut, fmt.Sprint("/api/v1/modules/e", i), "on"); err != nil {
					return err
				}
				time.Sleep(smallInterval)
			}
			return r.await(client, n)
		})
	}
	if err := callers.Wait(); err != nil {
		return nil, err
	}
	all := make(waits)
	for _, client := range clients {
		for i, at := range changed[client] {
			all[client] = append(all[client], milliseconds(r.at(client, fmt.Sprint("e", i)).Sub(at)))
		}
	}
	return all, nil
}

// receivers are the receivers of all clients. A client's name is the path of its receiver.
type receivers struct {
	*httptest.Server
	mu        sync.Mutex
	behaviour map[string]func(http.ResponseWriter)
	delivered map[string]map[string]time.Time // by client and module
	first     map[string]time.Time            // delivery since behave
	last      map[string]time.Time
	count     map[string]int // deliveries since behave
}

// newReceivers starts receivers that all work.
func newReceivers() *receivers {
	r := &receivers{
		behaviour: make(map[string]func(http.ResponseWriter)), delivered: make(map[string]map[string]time.Time),
		first: make(map[string]time.Time), last: make(map[string]time.Time), count: make(map[string]int),
	}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	return r
}

func work(w http.ResponseWriter) { time.Sleep(receiverTime); w.WriteHeader(http.StatusNoContent) }
func fail(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }

// behave makes a client's receiver respond differently.
func (r *receivers) behave(client string, respond func(http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviour[client] = respond
	r.count[client] = 0
}

func (r *receivers) receive(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	var text struct{ Data struct{ ID string } }
	_ = json.Unmarshal(body, &text)
	client := path.Base(req.URL.Path)
	r.mu.Lock()
	respond := r.behaviour[client]
	r.mu.Unlock()
	if respond == nil {
		respond = work
	}
	response := &statusWriter{ResponseWriter: w}
	respond(response)
	if response.status != http.StatusNoContent {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delivered[client] == nil {
		r.delivered[client] = make(map[string]time.Time)
	}
	now := time.Now()
	r.delivered[client][text.Data.ID] = now
	if r.count[client] == 0 {
		r.first[client] = now
	}
	r.last[client] = now
	r.count[client]++
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// await waits until n modules of a client have had a notification delivered.
func (r *receivers) await(client string, n int) error {
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		delivered := len(r.delivered[client])
		r.mu.Unlock()
		if delivered >= n {
			return nil
		}
	}
	return fmt.Errorf("not all %d notifications of %s were delivered", n, client)
}

// span returns how long a client's deliveries have taken since behave, and how many there
// were.
func (r *receivers) span(client string) (time.Duration, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[client].Sub(r.first[client]) + receiverTime, r.count[client]
}

func (r *receivers) at(client, module string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivered[client][module]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
