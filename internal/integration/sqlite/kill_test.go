package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The variables of the environment that make this program the one to be killed.
const (
	killPathEnv = "WEBHOOKCFG_TEST_KILL_PATH"
	killFromEnv = "WEBHOOKCFG_TEST_KILL_FROM"
	// killAheadEnv has it say changes before it makes them.
	killAheadEnv = "WEBHOOKCFG_TEST_KILL_AHEAD"
)

const (
	killRounds  = 15
	killWriters = 4 // each makes the changes of a client of its own
)

// TestKill kills processes at moments of chance while they change a database that
// this process changes too. What was answered is there, in both, and of each
// writer that was killed at most one change more; nobody else is kept waiting.
func TestKill(t *testing.T) {
	if path := os.Getenv(killPathEnv); path != "" {
		writeUntilKilled(path)
	}
	acked, err := killRepeatedly(t, killRounds)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d processes killed; %d changes that were answered all survived", killRounds, acked)
}

// TestKillDetectsLostChanges kills processes that say what they have not done yet.
func TestKillDetectsLostChanges(t *testing.T) {
	if acked, err := killRepeatedly(t, killRounds, killAheadEnv+"=3"); err == nil {
		t.Errorf("of %d changes that were said too early none was missed", acked)
	}
}

// killRepeatedly returns how many changes the processes said were made.
func killRepeatedly(t *testing.T, rounds int, env ...string) (acked int, err error) {
	path := newPath(t)
	s := openWith(t, path, fileSettings)
	local := 0
	for range rounds {
		from, err := lastChanges(t.Context(), s)
		if err != nil {
			return acked, err
		}
		done := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() { local, err = writeConcurrently(t.Context(), s, local, done) })
		to := killWriter(t, path, from, rand.IntN(150), env)
		close(done)
		writing.Wait()
		if err != nil {
			return acked, fmt.Errorf("beside the one that was killed: %w", err)
		}
		found, err := lastChanges(t.Context(), newStore(t, openDB(t, path, fileSettings)))
		if err != nil {
			return acked, err
		}
		for w := range killWriters {
			acked += to[w] - from[w]
			if found[w] < to[w] || found[w] > to[w]+1 {
				return acked, fmt.Errorf("writer %d said %d changes; %d are there", w, to[w], found[w])
			}
		}
		if hook, err := s.Resolve(t.Context(), "local", "e1"); err != nil || number(hook) != local {
			return acked, fmt.Errorf("of our own %d changes, %d are there: %w", local, number(hook), err)
		}
	}
	return acked, nil
}

// writeConcurrently makes changes after the nth until done, and returns the last.
func writeConcurrently(ctx context.Context, s *sqlstore.FeedStore, n int, done <-chan struct{}) (int, error) {
	for {
		select {
		case <-done:
			return n, nil
		default:
		}
		if err := s.Apply(ctx, nth("local", n+1)); err != nil {
			return n, err
		}
		n++
	}
}

// nth is the nth change of a client. The entity e1 tells which was the last, since
// every change concerns it.
func nth(client string, n int) webhookcfg.Change {
	scope := webhookcfg.Entity("e1")
	if n%3 == 0 {
		scope = webhookcfg.All()
	}
	c := webhookcfg.Set(client, scope, egress.NewURL(fmt.Sprintf("https://hooks.example.com/%d", n)))
	c.Time = time.Unix(int64(n), 0)
	return c
}

// number is which change led to a webhook.
func number(hook webhookcfg.Webhook) int {
	if hook.Source == webhookcfg.SourceNone {
		return 0
	}
	return int(hook.Since.Unix())
}

func writerName(w int) string { return fmt.Sprint("writer", w) }

// lastChanges are the last changes of the writers.
func lastChanges(ctx context.Context, s webhookcfg.Store) (all [killWriters]int, err error) {
	for w := range all {
		hook, err := s.Resolve(ctx, writerName(w), "e1")
		if err != nil {
			return all, err
		}
		if n := number(hook); n > 0 && hook.URL.Reveal() != nth(writerName(w), n).URL.Reveal() {
			return all, fmt.Errorf("change %d is there with the URL of another", n)
		}
		all[w] = number(hook)
	}
	return all, nil
}

// killWriter starts a process, kills it after it said a number of lines, and returns
// the last changes that it said were made.
func killWriter(t *testing.T, path string, from [killWriters]int, lines int, env []string) [killWriters]int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), killPathEnv+"="+path, killFromEnv+"="+strings.Trim(fmt.Sprint(from), "[]"))
	child.Env = append(child.Env, env...)
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked := from
	reader := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == lines {
			_ = child.Process.Kill()
		}
		line, err := reader.ReadString('\n')
		if err != nil {
			break
		}
		var w, last int
		if _, err := fmt.Sscan(line, &w, &last); err != nil {
			t.Fatalf("the process said %q", line)
		}
		acked[w] = last
	}
	_, _ = io.Copy(io.Discard, reader)
	_ = child.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the process complained: %s", &stderr)
	}
	return acked
}

// writeUntilKilled changes the database until it is killed, and says what it has done.
func writeUntilKilled(path string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	db, err := openFile(path, fileSettings)
	if err != nil {
		fail(err)
	}
	s, err := sqlstore.New(db, sqlstore.SQLite(), nil)
	if err != nil {
		fail(err)
	}
	ahead, _ := strconv.Atoi(os.Getenv(killAheadEnv))
	var all sync.WaitGroup
	for w, from := range strings.Fields(os.Getenv(killFromEnv)) {
		first, err := strconv.Atoi(from)
		if err != nil {
			fail(err)
		}
		all.Go(func() {
			for n := first + 1; ; n++ {
				if err := s.Apply(context.Background(), nth(writerName(w), n)); err != nil {
					fail(err)
				}
				fmt.Println(w, n+ahead)
			}
		})
	}
	all.Wait()
}
