package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// member is a process of its own that sends notifications.
type member struct {
	t   testing.TB
	cmd *exec.Cmd
}

// memberConfig is what a member needs to know.
type memberConfig struct {
	Engine, DSN, Prefix string
	// URL is where the clients' webhooks lead to. It tells the members apart.
	URL     string
	Clients []string
	// FreezeAt makes the member freeze before the first call of the database whose kind starts
	// so.
	FreezeAt string
}

const memberVar = "WEBHOOKCFG_OUTBOX_MEMBER"

// start starts a member. It's killed when the test ends.
func (f *fixture) start(e engineCase, name, freezeAt string, clients ...string) *member {
	f.t.Helper()
	config, err := json.Marshal(memberConfig{e.name, f.dsn, f.prefix, f.server.URL + "/" + name, clients, freezeAt})
	if err != nil {
		f.t.Fatal(err)
	}
	m := &member{f.t, exec.Command(os.Args[0])}
	m.cmd.Env = append(os.Environ(), memberVar+"="+string(config))
	m.cmd.Stderr = f.t.Output()
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() { // the kernel sends Pdeathsig when the thread ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- m.cmd.Start()
		_ = m.cmd.Wait()
		started <- nil
	}()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		m.signal(syscall.SIGKILL)
		<-started
	})
	return m
}

func (m *member) signal(s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil && err != os.ErrProcessDone {
		m.t.Error(err)
	}
}

// awaitFrozen returns when the member has frozen itself.
func (m *member) awaitFrozen() {
	m.t.Helper()
	for range 3000 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
		if _, after, _ := strings.Cut(string(status), ") "); err == nil && strings.HasPrefix(after, "T") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.t.Fatal("the member isn't frozen")
}

// runMember is the main function of a member.
func runMember(config string) error {
	var c memberConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	t := new(memberT)
	st := store.NewMemory()
	for _, client := range c.Clients {
		change := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(c.URL))
		change.Time = time.Unix(1, 0)
		if err := st.Apply(context.Background(), change); err != nil {
			return err
		}
	}
	for _, e := range engines {
		if e.name != c.Engine {
			continue
		}
		f := &fixture{t: t, db: open(t, e.driver, c.DSN), dsn: c.DSN}
		db, _ := f.wired(func(call call) (before, after error) {
			if c.FreezeAt != "" && strings.HasPrefix(call.kind, c.FreezeAt) {
				c.FreezeAt = ""
				return nil, syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
			return nil, nil
		})
		box, err := outbox.New(db, e.dialect, newSender(t, st, nil), &outbox.Options{Prefix: c.Prefix, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return box.Run(ctx)
	}
	return fmt.Errorf("no engine %q", c.Engine)
}

// memberT is the testing.TB of a member, which has no test.
type memberT struct{ testing.TB }

func (*memberT) Helper()           {}
func (*memberT) Cleanup(func())    {}
func (*memberT) Output() io.Writer { return os.Stderr }
func (*memberT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// ledger is what a receiver knows about requests, by the path that tells members apart.
type ledger struct {
	mu       sync.Mutex
	arrived  map[string]int
	underway map[string]int
	ended    map[string][]time.Time
	hold     map[string]chan struct{} // requests of these members wait
	takes    time.Duration
}

func newLedger(f *fixture) *ledger {
	l := &ledger{arrived: make(map[string]int), underway: make(map[string]int), ended: make(map[string][]time.Time), hold: make(map[string]chan struct{}), takes: 10 * time.Millisecond}
	f.respond = l.respond
	return l
}

func (l *ledger) respond(_ http.ResponseWriter, r *http.Request) {
	name := strings.Trim(r.URL.Path, "/")
	l.mu.Lock()
	l.arrived[name]++
	l.underway[name]++
	hold := l.hold[name]
	l.mu.Unlock()
	if hold != nil {
		<-hold
	} else {
		time.Sleep(l.takes)
	}
	l.mu.Lock()
	l.underway[name]--
	l.ended[name] = append(l.ended[name], time.Now())
	l.mu.Unlock()
}

func (l *ledger) of(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.arrived[name]
}

// await waits until a member has made n requests.
func (l *ledger) await(t testing.TB, name string, n int) {
	t.Helper()
	for range 3000 {
		if l.of(name) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s made %d requests, want %d", name, l.of(name), n)
}

// uncertain returns how many attempts of a process may not be written down if it's killed now:
// those under way, and those that ended within a tenth of a second.
func (l *ledger) uncertain(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.ended[name] {
		if time.Since(at) < 100*time.Millisecond {
			n++
		}
	}
	return n + l.underway[name]
}

// TestFrozen freezes a process with attempts under way until another one has done everything.
// When it goes on, it starts no attempt, and writes nothing.
func TestFrozen(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			const n, slots = 40, 4
			f := newFixture(t, e, nil, nil)
			l := newLedger(f)
			hold := make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			t.Cleanup(release)
			l.hold["frozen"] = hold
			f.fill("a", n, "m")
			frozen := f.start(e, "frozen", "", "a")
			l.await(t, "frozen", slots)
			frozen.signal(syscall.SIGSTOP)
			at := time.Now()
			frozen.awaitFrozen()
			release()
			f.start(e, "other", "", "a")
			l.await(t, "other", 1)
			t.Logf("went on after %v", time.Since(at))
			l.await(t, "other", n)
			f.awaitEnds(outbox.Delivered, n)
			before := f.rows()
			frozen.signal(syscall.SIGCONT)
			f.awaitProcesses(2) // it knows
			f.enqueue("b", "e", "unknown")
			f.awaitEnds(outbox.Dropped, 1)
			if got := l.of("frozen"); got != slots {
				t.Errorf("%d attempts of the one that was frozen, want %d", got, slots)
			}
			f.exec("DELETE FROM {message} WHERE state = 3")
			if after := f.rows(); after != before || l.of("other") != n {
				t.Errorf("%d attempts of the other one, want %d. The rows were\n%s\nand are\n%s", l.of("other"), n, before, after)
			}
		})
	}
	all.wait()
}

// rows returns the notifications, as text.
func (f *fixture) rows() string {
	f.t.Helper()
	rows, err := f.db.Query("SELECT seq, state, due, attempts, status FROM " + f.prefix + "outbox_message ORDER BY seq")
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var v [5]int64
		if err := rows.Scan(&v[0], &v[1], &v[2], &v[3], &v[4]); err != nil {
			f.t.Fatal(err)
		}
		fmt.Fprintln(&all, v)
	}
	if err := rows.Err(); err != nil {
		f.t.Fatal(err)
	}
	return all.String()
}

// awaitProcesses waits until there are n processes.
func (f *fixture) awaitProcesses(n int) {
	f.t.Helper()
	var got int
	for range 2000 {
		if err := f.db.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_process").Scan(&got); err == nil && got == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("%d processes, want %d", got, n)
}

// TestFrozenInTransaction freezes a process in the middle of a write. Others go on with its
// clients all the same, since the server ends the transaction. SQLite can't: there, others wait
// until the process goes on or is killed.
func TestFrozenInTransaction(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		if e.name == "MariaDB" {
			dsn := e.dsn
			e.dsn = func(t testing.TB) string { return dsn(t) + "&idle_write_transaction_timeout=4" }
		}
		all.start(t, e.name, func(t *testing.T) {
			const n, slots = 40, 4
			f := newFixture(t, e, nil, nil)
			l := newLedger(f)
			f.fill("a", n, "m")
			frozen := f.start(e, "frozen", "UPDATE message", "a")
			frozen.awaitFrozen()
			at := time.Now()
			f.start(e, "other", "", "a")
			if e.name == "SQLite" {
				time.Sleep(time.Second)
				frozen.signal(syscall.SIGKILL)
			}
			l.await(t, "other", 1)
			t.Logf("went on after %v", time.Since(at))
			f.awaitEnds(outbox.Delivered, n)
			before, attempts := f.rows(), l.of("frozen")
			frozen.signal(syscall.SIGCONT)
			if e.name != "SQLite" {
				f.awaitProcesses(2)
			}
			// Requests that were about to be written when it froze are written then.
			if after := f.rows(); after != before || l.of("frozen") > attempts+slots {
				t.Errorf("%d attempts of the one that was frozen, want %d, and those that were under way. The rows were\n%s\nand are\n%s", l.of("frozen"), attempts, before, after)
			}
		})
	}
	all.wait()
}

// TestKilledProcesses kills processes at random moments while notifications are enqueued. All
// arrive. Of those that arrive twice, there are about as many as were under way, or ended within
// a tenth of a second before the kill. TestKilled of package outbox counts in virtual time.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			l := newLedger(f)
			clients := []string{"a", "b", "c"}
			enqueued, stop := f.enqueueAll(clients)
			names := [...]string{"m0", "m1"}
			var members [2]*member
			for i, name := range names {
				members[i] = f.start(e, name, "", clients...)
			}
			most := 0
			for range *rounds {
				before, more := f.arrived(), 10+rand.IntN(50)
				for f.arrived() < before+more {
					time.Sleep(time.Millisecond)
				}
				i := rand.IntN(len(names))
				members[i].signal(syscall.SIGKILL)
				most += l.uncertain(names[i])
				members[i] = f.start(e, names[i], "", clients...)
			}
			stop()
			n := enqueued()
			f.await(n, time.Minute)
			f.awaitNoneWaiting()
			twice := f.arrived() - n
			t.Logf("%d kills: %d notifications, %d arrived twice, %d were uncertain", *rounds, n, twice, most)
			if twice > 2*most+8**rounds { // on a busy machine, writes take longer
				t.Errorf("%d arrived twice, want about %d", twice, most)
			}
		})
	}
	all.wait()
}

// enqueueAll enqueues notifications until stop is called. Those that were committed count.
func (f *fixture) enqueueAll(clients []string) (enqueued func() int, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	n := 0
	var running sync.WaitGroup
	for _, client := range clients {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if f.box.Enqueue(context.Background(), f.db, notification(client, fmt.Sprint("e", i), fmt.Sprint(client, i))) == nil {
					mu.Lock()
					n++
					mu.Unlock()
				}
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	f.t.Cleanup(stop)
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}, stop
}

// awaitNoneWaiting waits until everything has ended.
func (f *fixture) awaitNoneWaiting() {
	f.t.Helper()
	for range 3000 {
		if f.waiting() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("%d are waiting", f.waiting())
}
