package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// fault is what happens to a statement.
type fault struct {
	name string
	// takesEffect says that the statement reaches the database.
	takesEffect bool
	// kills says that the process dies with it. Otherwise it gets an error once.
	kills bool
}

var faults = []fault{
	{"fails", false, false},
	{"response lost", true, false},
	{"killed before", false, true},
	{"killed after", true, true},
}

// TestEveryStatement lets a process do everything that it does, with a fault at each of its
// statements: the first time that it makes it, and on SQLite the second time, too. Then another
// process runs. Nothing is lost, and only a kill makes anything arrive twice.
func TestEveryStatement(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		most := 1
		if e.name == "SQLite" || *soak {
			most = 2
		}
		all.start(t, e.name, func(t *testing.T) {
			steps := record(t, e)
			if len(steps) < 20 {
				t.Errorf("the script makes %d kinds of statements", len(steps))
			}
			var each together
			for i, s := range steps {
				for _, fault := range faults {
					if fault.takesEffect && !s.writes {
						continue // the same as if it had failed
					}
					for time := 1; time <= min(s.times, most); time++ {
						name, _, _ := strings.Cut(s.kind, " WHERE")
						each.start(t, fmt.Sprintf("%d %.40s %s %d", i, name, fault.name, time), func(t *testing.T) {
							s.disturb(t, e, fault, time)
						})
					}
				}
			}
			each.wait()
		})
	}
	all.wait()
}

// together runs subtests at the same time. They wait most of the time, so there can be more
// of them than -parallel allows.
type together struct {
	running sync.WaitGroup
	turns   chan struct{}
}

func (g *together) start(t *testing.T, name string, test func(t *testing.T)) {
	if g.turns == nil {
		g.turns = make(chan struct{}, 24)
	}
	g.turns <- struct{}{}
	g.running.Go(func() {
		defer func() { <-g.turns }()
		t.Run(name, test)
	})
}

func (g *together) wait() { g.running.Wait() }

// step is a kind of statement of the script.
type step struct {
	kind   string
	writes bool
	part   int // of the script that makes it first
	times  int // how often that part makes it
}

// script is a run of a process that makes all its statements.
type script struct {
	*fixture
	dying   *outbox.Outbox
	part    atomicInt
	dead    chan struct{} // closed when the process is killed
	die     func()
	ctx     context.Context
	want    map[string]int // arrivals
	unknown map[string]bool
}

type atomicInt struct {
	mu sync.Mutex
	n  int
}

func (a *atomicInt) set(n int) { a.mu.Lock(); a.n = n; a.mu.Unlock() }

func (a *atomicInt) get() int { a.mu.Lock(); defer a.mu.Unlock(); return a.n }

// parts are the parts of the script.
var parts = []func(s *script){
	func(s *script) { // what is enqueued is sent, or given up
		s.enqueue("a", "e1", "m1", "m2")
		s.dying.Committed("a")
		s.enqueue("b", "bad", "bad")
		s.want["m1"], s.want["m2"], s.want["bad"] = 1, 1, 3
		if err := s.box.Enqueue(s.t.Context(), s.db, outbox.Notification{Client: "a", Entity: "e2", Message: deliver.Message{ID: "long", Body: make([]byte, 5000)}}); err != nil {
			s.t.Error(err)
		}
		s.want["long"] = 1
		s.settle()
	},
	func(s *script) { // woken by another process
		s.box.Changed("a", webhookcfg.All())
		s.dying.Changed("b", webhookcfg.All())
		s.enqueue("a", "e1", "m3")
		s.want["m3"] = 1
		s.settle()
	},
	func(s *script) { // takes over from a process that was killed
		for _, statement := range []string{
			"UPDATE %soutbox_line SET owner = 7 WHERE client = 'c'",
			"INSERT INTO %soutbox_process (id, beat, until, settings) VALUES (7, 0, 1, '')",
		} {
			_, err := s.db.Exec(fmt.Sprintf(statement, s.prefix))
			for err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") { // as enqueue does
				_, err = s.db.Exec(fmt.Sprintf(statement, s.prefix))
			}
			if err != nil {
				s.t.Error(err)
			}
		}
		s.enqueue("c", "e1", "m4")
		s.want["m4"] = 1
		s.settle()
	},
	func(s *script) { // gives clients back that have nothing, and takes them again
		s.sleep(7 * time.Second)
		s.enqueue("a", "e1", "m5")
		s.want["m5"] = 1
		s.settle()
	},
	func(s *script) { // is told
		s.twice(func(ctx context.Context) error {
			return s.dying.SendAgain(ctx, "a", sent.Selection{ID: "m1"})
		})
		s.unknown["m1"] = true
		s.settle()
	},
	func(s *script) { // sends many again
		s.twice(func(ctx context.Context) error {
			return s.dying.SendAgain(ctx, "b", sent.Selection{Scope: webhookcfg.Entity("bad")})
		})
		s.unknown["bad"] = true
		s.resend()
		s.settle()
	},
}

// twice calls f again after an error, as a host would.
func (s *script) twice(f func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		if s.isDead() || f(ctx) == nil {
			return
		}
	}
}

func (s *script) isDead() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

func (s *script) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.dead:
	}
}

// resend waits until nobody sends many again, or the process is dead.
func (s *script) resend() {
	s.t.Helper()
	left := 1
	for range 2000 {
		if err := s.db.QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM %soutbox_again WHERE ended = 0", s.prefix)).Scan(&left); err == nil && left == 0 || s.isDead() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Errorf("%d clients are still sending again", left)
}

// settle waits until everything has ended, or the process is dead.
func (s *script) settle() {
	s.t.Helper()
	for range 2000 {
		if s.isDead() || s.waiting() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Errorf("%d are still waiting", s.waiting())
}

// waiting returns how many notifications wait, or -1 if the database doesn't tell.
func (f *fixture) waiting() int {
	page, err := f.box.List(context.Background(), outbox.Query{State: outbox.Waiting, Limit: 1000})
	if err != nil {
		return -1
	}
	return len(page.Entries)
}

func newScript(t *testing.T, e engineCase, hook func(s *script, c call) (before, after error)) *script {
	opts := outbox.Options{Schedule: deliver.Schedule{50 * time.Millisecond, 50 * time.Millisecond}}
	s := &script{dead: make(chan struct{}), want: make(map[string]int), unknown: make(map[string]bool)}
	o := opts
	s.fixture = newFixture(t, e, &o, nil)
	s.respond = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Id") == "bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	for _, client := range []string{"a", "b", "c"} {
		s.set(client, "/")
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx, s.die = ctx, sync.OnceFunc(func() { close(s.dead); cancel() })
	db, _ := s.wired(func(c call) (before, after error) { return hook(s, c) })
	var err error
	o = opts
	o.Prefix = s.prefix
	o.Grace = time.Second
	if s.dying, err = outbox.New(db, e.dialect, s.sender, &o); err != nil {
		t.Fatal(err)
	}
	// The line of a client that somebody else has.
	if _, err := s.db.Exec(fmt.Sprintf("INSERT INTO %soutbox_line (client, owner, due) VALUES ('c', 0, %d)", s.prefix, int64(1)<<61)); err != nil {
		t.Fatal(err)
	}
	return s
}

// play runs the script up to a part. It returns when the process has stopped, or is dead.
func (s *script) play(last int) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- s.dying.Run(ctx) }()
	for i, part := range parts[:min(last+1, len(parts))] {
		s.part.set(i)
		if !s.isDead() {
			part(s)
		}
	}
	s.part.set(len(parts))
	cancel()
	if err := <-done; err != nil && !s.isDead() {
		s.t.Error(err)
	}
}

// record returns the statements of the script.
func record(t *testing.T, e engineCase) (all []*step) {
	var mu sync.Mutex
	byKind := make(map[string]*step)
	s := newScript(t, e, func(s *script, c call) (before, after error) {
		mu.Lock()
		defer mu.Unlock()
		if !c.ends {
			t.Errorf("if the database hangs, so does the process, in %s", c.kind)
		}
		k := byKind[c.kind]
		if k == nil {
			k = &step{kind: c.kind, writes: c.writes, part: s.part.get()}
			byKind[c.kind] = k
			all = append(all, k)
		}
		if k.part == s.part.get() {
			k.times++
		}
		return nil, nil
	})
	s.play(len(parts))
	mu.Lock()
	defer mu.Unlock()
	return all
}

func (k *step) disturb(t *testing.T, e engineCase, f fault, nth int) {
	var mu sync.Mutex
	n, isDead := 0, false
	s := newScript(t, e, func(s *script, c call) (before, after error) {
		mu.Lock()
		defer mu.Unlock()
		if isDead {
			return errKilled, nil
		}
		if s.part.get() < k.part || c.kind != k.kind {
			return nil, nil
		}
		if n++; n != nth {
			return nil, nil
		}
		err := errFault
		if f.kills {
			err, isDead = errKilled, true
			s.die()
		}
		if f.takesEffect {
			return nil, err
		}
		return err, nil
	})
	s.play(k.part)
	stop := s.run()
	s.dead = make(chan struct{})
	s.resend()
	s.settle()
	stop()
	mu.Lock()
	happened := n >= nth
	mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, want := range s.want {
		most := want
		if f.kills && happened {
			most++
		}
		if got := len(s.arrivals[id]); got < want || got > most && !s.unknown[id] {
			t.Errorf("%s arrived %d times, want %d", id, got, want)
		}
	}
	var left int
	if err := s.db.QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM %[1]soutbox_line WHERE owner NOT IN (SELECT 0 UNION SELECT id FROM %[1]soutbox_process)", s.prefix)).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d lines are nobody's: %v", left, err)
	}
}

var errFault = errors.New("injected")

// awaitEnds waits until n notifications are in a state.
func (f *fixture) awaitEnds(state outbox.State, n int) {
	f.t.Helper()
	var got int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		page, err := f.box.List(f.t.Context(), outbox.Query{State: state, Limit: 1000})
		if err != nil && !strings.Contains(err.Error(), "locked") {
			f.t.Fatal(err)
		}
		if got = len(page.Entries); got == n {
			return
		}
	}
	f.t.Fatalf("%d are %v, want %d", got, state, n)
}
