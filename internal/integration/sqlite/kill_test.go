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

// Environment variables that turn the test program into a writer, so that we can kill it.
const (
	killPathEnv = "WEBHOOKCFG_TEST_KILL_PATH"
	killFromEnv = "WEBHOOKCFG_TEST_KILL_FROM"
)

const (
	killRounds  = 15
	killWriters = 4 // each changes its own client
)

// TestKill kills processes at random moments while they and this process change a database.
// All acknowledged changes must survive, and at most one more change of each killed writer.
// This process must not be blocked.
func TestKill(t *testing.T) {
	if path := os.Getenv(killPathEnv); path != "" {
		writeUntilKilled(path)
	}
	acked, err := killRepeatedly(t, killRounds)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d processes killed; all %d acknowledged changes survived", killRounds, acked)
}

// killRepeatedly kills a process in each round, and returns how many changes were
// acknowledged.
func killRepeatedly(t *testing.T, rounds int) (acked int, err error) {
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
		to := killWriter(t, path, from, rand.IntN(150))
		close(done)
		writing.Wait()
		if err != nil {
			return acked, fmt.Errorf("concurrently with the killed process: %w", err)
		}
		found, err := lastChanges(t.Context(), newStore(t, openDB(t, path, fileSettings)))
		if err != nil {
			return acked, err
		}
		for w := range killWriters {
			acked += to[w] - from[w]
			if found[w] < to[w] || found[w] > to[w]+1 {
				return acked, fmt.Errorf("writer %d acknowledged %d changes; %d are found", w, to[w], found[w])
			}
		}
		if hook, err := s.Resolve(t.Context(), "local", "e1"); err != nil || number(hook) != local {
			return acked, fmt.Errorf("of %d local changes, %d are found: %w", local, number(hook), err)
		}
	}
	return acked, nil
}

// writeConcurrently makes the changes after the n-th until done, and returns the number of
// the last one.
func writeConcurrently(ctx context.Context, s *sqlstore.Store, n int, done <-chan struct{}) (int, error) {
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

// nth returns the n-th change of a client. Every change affects the entity e1, so e1 shows
// the last change.
func nth(client string, n int) webhookcfg.Change {
	scope := webhookcfg.Entity("e1")
	if n%3 == 0 {
		scope = webhookcfg.All()
	}
	c := webhookcfg.SetChange(client, scope, egress.NewURL(fmt.Sprintf("https://hooks.example.com/%d", n)))
	c.Time = time.Unix(int64(n), 0)
	return c
}

// number returns the number of the change that made a webhook.
func number(hook webhookcfg.Webhook) int {
	if hook.Source == webhookcfg.SourceNone {
		return 0
	}
	return int(hook.Since.Unix())
}

func writerName(w int) string { return fmt.Sprint("writer", w) }

// lastChanges returns the number of each writer's last change.
func lastChanges(ctx context.Context, s webhookcfg.Store) (all [killWriters]int, err error) {
	for w := range all {
		hook, err := s.Resolve(ctx, writerName(w), "e1")
		if err != nil {
			return all, err
		}
		if n := number(hook); n > 0 && hook.URL.Reveal() != nth(writerName(w), n).URL.Reveal() {
			return all, fmt.Errorf("change %d has the URL of another", n)
		}
		all[w] = number(hook)
	}
	return all, nil
}

// killWriter starts a process, kills it after some acknowledgements, and returns each
// writer's last acknowledged change.
func killWriter(t *testing.T, path string, from [killWriters]int, lines int) [killWriters]int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), killPathEnv+"="+path, killFromEnv+"="+strings.Trim(fmt.Sprint(from), "[]"))
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
			t.Fatalf("unexpected output %q", line)
		}
		acked[w] = last
	}
	_, _ = io.Copy(io.Discard, reader)
	_ = child.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the process failed: %s", &stderr)
	}
	return acked
}

// writeUntilKilled changes the database until the process is killed. It prints each change
// that it has made.
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
				fmt.Println(w, n)
			}
		})
	}
	all.Wait()
}
