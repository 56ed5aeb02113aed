package enginetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// The clock of the database is that of the bubble in which a test runs.
func init() {
	sqlite.MustRegisterScalarFunction("bubble_now", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UnixMicro(), nil
	})
}

// world has a database, processes that send what's in it, the webhooks of clients, and receivers. It
// belongs into a bubble.
type world struct {
	t       *testing.T
	path    string
	db      *sql.DB // that clients enqueue with
	random  *rand.Rand
	setting int64
	limits  line.Limits
	writing chan struct{} // see [faultyConn]
	takes   time.Duration // how long each call of a process takes

	mu        sync.Mutex
	clients   map[string]*client
	receivers map[string]*receiver
	sent      map[string]*sent // by ID
	underWay  map[slots]int
	arrivals  []arrival
	mayRepeat bool // a process was killed
}

type client struct {
	base      line.Hook
	overrides map[string]line.Hook
}

// receiver is what answers at a host.
type receiver struct {
	takes time.Duration
	fails line.Effect // NoEffect: it works
	asks  time.Duration
	hangs bool
}

// sent is a notification.
type sent struct {
	client, entity, id string
	seq                int
	committed          time.Time
	attempts           int
	ended              string
	at                 time.Time
}

type arrival struct {
	id, host string
	at       time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, path: filepath.Join(t.TempDir(), "q.db"), random: rand.New(rand.NewPCG(seed, 7)),
		limits:  line.Limits{PerClient: 6, PerHost: 2, MaxPause: time.Minute},
		clients: make(map[string]*client), receivers: make(map[string]*receiver), sent: make(map[string]*sent), underWay: make(map[slots]int),
		writing: make(chan struct{}, 1),
	}
	w.db = w.open(2, new(faults))
	create(t, w.db)
	return w
}

func (w *world) open(pool int, f *faults) *sql.DB {
	db, err := openWith("file:"+w.path+"?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)", f, w.writing)
	if err != nil {
		w.t.Fatal(err)
	}
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	return db
}

func (w *world) tables(db *sql.DB) *queue.Tables {
	t, err := queue.NewTables(db, sqlstore.SQLite(), "wh_")
	if err != nil {
		w.t.Fatal(err)
	}
	return t.WithClock("bubble_now()")
}

// process is one that sends.
type process struct {
	*queue.Queue
	w      *world
	faults *faults
	db     *sql.DB
	stop   context.CancelFunc
	done   chan struct{}

	isKilled atomic.Bool
	killed   chan struct{}
}

// start starts a process.
func (w *world) start(o queue.Options) *process {
	if o.Clients == 0 {
		o.Clients = 16
	}
	o.Grace = 20 * time.Second
	o.Warn = func(ctx context.Context, what string, err error) {
		if err != nil && ctx.Err() == nil {
			w.t.Logf("%v: %s: %v", time.Now(), what, err)
		}
	}
	o.Check, o.IsFatal = func(context.Context) error { return nil }, func(error) bool { return false }
	o.TookOver, o.Lost = func(int) {}, func() { w.t.Log("lost") }
	p := &process{w: w, faults: &faults{takes: w.takes}, done: make(chan struct{}), killed: make(chan struct{})}
	p.db = w.open(3, p.faults)
	p.Queue = queue.New(w.tables(p.db), sender{p}, o)
	ctx, stop := context.WithCancel(w.t.Context())
	p.stop = stop
	go func() {
		defer close(p.done)
		if err := p.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	return p
}

// end ends a process in good order.
func (p *process) end() {
	p.stop()
	<-p.done
	p.db.Close()
}

// kill ends a process as kill -9 does: it writes nothing more, and starts nothing.
func (p *process) kill() {
	p.isKilled.Store(true)
	close(p.killed)
	p.faults.cut()
	p.end()
}

func (w *world) client(name string) *client {
	c := w.clients[name]
	if c == nil {
		c = &client{overrides: make(map[string]line.Hook)}
		w.clients[name] = c
	}
	return c
}

// set sets the webhook of an entity, or of all.
func (w *world) set(name, entity, host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.client(name)
	w.setting++
	h := line.Hook{Override: entity != "", Setting: 1000 + w.setting, Host: host, Target: uint64(len(host))}
	if entity != "" {
		c.overrides[entity] = h
		return
	}
	c.base = h
	clear(c.overrides)
}

func (w *world) unset(name, entity string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.client(name).overrides, entity)
}

func (w *world) hook(name, entity string) line.Hook {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.client(name)
	if h, ok := c.overrides[entity]; ok {
		return h
	}
	return c.base
}

// receives says what happens at a host.
func (w *world) receives(host string, r receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receivers[host] = &r
}

// enqueue enqueues notifications of an entity.
func (w *world) enqueue(name, entity string, n int) {
	w.t.Helper()
	tx, err := w.db.Begin()
	if err != nil {
		w.t.Fatal(err)
	}
	for range n {
		w.mu.Lock()
		id := fmt.Sprint("m", len(w.sent)+1)
		w.sent[id] = &sent{client: name, entity: entity, id: id, seq: len(w.sent) + 1, committed: time.Now()}
		w.mu.Unlock()
		if _, err := tx.Exec(`INSERT INTO wh_outbox_message (client, entity, id, enqueued, content_type, body) VALUES (?, ?, ?, bubble_now(), '', 'x')`, []byte(name), []byte(entity), id); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

// sender makes a process's attempts at the world's receivers.
type sender struct{ *process }

func (s sender) Limits(string) line.Limits { return s.w.limits }

func (s sender) Base(_ context.Context, name string) (line.Hook, bool, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	c := s.w.client(name)
	return c.base, len(c.overrides) == 0, nil
}

func (s sender) Webhook(_ context.Context, name, entity string) (line.Hook, error) {
	return s.w.hook(name, entity), nil
}

func (s sender) Begin(_ context.Context, name string, r *line.Row) (queue.Attempt, error) {
	if s.isKilled.Load() {
		return nil, errCut
	}
	return &attempt{s.process, name, s.w.hook(name, r.Entity), r}, nil
}

// arrived returns how many attempts there have been.
func (w *world) arrived() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.arrivals)
}

type attempt struct {
	process *process
	name    string
	hook    line.Hook
	row     *line.Row
}

func (a *attempt) Webhook() (line.Hook, bool) { return a.hook, true }

// delays are those of the schedule.
var delays = []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute}

func (a *attempt) Send(ctx context.Context) queue.Outcome {
	if a.process.isKilled.Load() {
		return queue.Outcome{Result: line.Result{IsOurs: true}}
	}
	w, begun := a.process.w, time.Now()
	onHost := a.name + " " + a.hook.Host
	w.mu.Lock()
	r := w.receivers[a.hook.Host]
	if r == nil {
		r = &receiver{takes: 10 * time.Millisecond}
	}
	s := w.sent[a.row.ID]
	w.arrivals = append(w.arrivals, arrival{a.row.ID, a.hook.Host, begun})
	a.count(r, 1)
	if forClient, forHost := w.counted(a.process, a.name), w.counted(a.process, onHost); forClient > w.limits.PerClient || forHost > w.limits.PerHost {
		w.t.Errorf("%d attempts for %s, %d for %s", forClient, a.name, forHost, onHost)
	}
	if s.ended != "" && !w.mayRepeat {
		w.t.Errorf("%s was %s, and goes out again", s.id, s.ended)
	}
	s.attempts++
	w.mu.Unlock()
	takes := r.takes
	if r.hangs {
		takes = hangsFor
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	case <-a.process.killed:
	}
	w.mu.Lock()
	a.count(r, -1)
	w.mu.Unlock()
	o := queue.Outcome{Attempts: a.row.Attempts + 1, Result: line.Result{Effect: line.Success, Start: begun, HasEnded: true, Pause: r.asks}, State: queue.Delivered}
	if r.fails == line.NoEffect && !r.hangs {
		o.OnWritten = func() { w.ended(s, "delivered") }
		return o
	}
	o.Effect, o.Reason = max(r.fails, line.Failure), "status"
	if o.Attempts > len(delays) {
		o.State, o.OnWritten = queue.GivenUp, func() { w.ended(s, "given up") }
	} else {
		o.HasEnded, o.Delay = false, max(delays[o.Attempts-1], r.asks)
	}
	return o
}

// slots are those of a client, or of a client and a host, that a process's attempts have.
type slots struct {
	of      *process
	name    string
	mayHang bool
}

// count counts an attempt as under way, or no more.
func (a *attempt) count(r *receiver, n int) {
	a.process.w.underWay[slots{a.process, a.name, r.hangs}] += n
	a.process.w.underWay[slots{a.process, a.name + " " + a.hook.Host, r.hangs}] += n
}

// counted returns how many attempts have slots. Once something has gone wrong, a process may not know of
// those that hang in another one which has lost its lease.
func (w *world) counted(of *process, name string) (n int) {
	for s, count := range w.underWay {
		if s.name == name && (s.of == of || !s.mayHang || !w.mayRepeat) {
			n += count
		}
	}
	return n
}

func (w *world) ended(s *sent, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.ended, s.at = how, time.Now()
}

// left returns the notifications that haven't ended.
func (w *world) left() (ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(w.sent)) {
		if w.sent[id].ended == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// within lets time pass until all notifications have ended, and fails if that takes longer.
func (w *world) within(d time.Duration) time.Duration {
	w.t.Helper()
	start := time.Now()
	for time.Since(start) < d {
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if len(w.left()) == 0 {
			return time.Since(start)
		}
	}
	w.show()
	w.t.Fatalf("%d of %d haven't ended after %v", len(w.left()), len(w.sent), d)
	return 0
}

// show logs what waits in the tables.
func (w *world) show() {
	w.dump(`SELECT * FROM wh_outbox_line`)
	w.dump(`SELECT * FROM wh_outbox_mark`)
	w.dump(`SELECT client, entity, setting, failures, (ends-bubble_now())/1000, state FROM wh_outbox_pause`)
	w.dump(`SELECT * FROM wh_outbox_process`)
	for _, id := range w.left()[:min(len(w.left()), 10)] {
		var state, attempts int
		var reason string
		if err := w.db.QueryRow(`SELECT state, attempts, reason FROM wh_outbox_message WHERE id = ?`, id).Scan(&state, &attempts, &reason); err != nil {
			w.t.Fatal(err)
		}
		w.t.Logf("%s is in state %d after %d attempts, %q", id, state, attempts, reason)
	}
	rows, err := w.db.Query(`SELECT client, entity, grp, (due - bubble_now()) / 1000, attempts, resent, COUNT(*) FROM wh_outbox_message WHERE state = 0 GROUP BY 1, 2, 3, 4, 5, 6 LIMIT 20`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, entity string
		var group, due, attempts, resent, n int64
		if err := rows.Scan(&name, &entity, &group, &due, &attempts, &resent, &n); err != nil {
			w.t.Fatal(err)
		}
		w.t.Logf("%s/%s: %d in group %d, due in %d ms, %d attempts, resent %d", name, entity, n, group, due, attempts, resent)
	}
}

// dump logs the rows of a query.
func (w *world) dump(query string) {
	rows, err := w.db.Query(query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			w.t.Fatal(err)
		}
		var text strings.Builder
		for i, v := range values {
			x := *v.(*any)
			if b, ok := x.([]byte); ok {
				x = string(b)
			}
			fmt.Fprintf(&text, "%s=%v ", names[i], x)
		}
		w.t.Log(text.String())
	}
}

// has reports whether a notification has ended.
func (w *world) has(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[id].ended != ""
}
