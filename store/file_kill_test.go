package store_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

var killRounds = flag.Int("killrounds", 20, "how many times TestKill kills a process")

// Environment variables that make this program the process to be killed.
const (
	killPathVar = "WEBHOOKCFG_TEST_KILL_PATH"
	killFromVar = "WEBHOOKCFG_TEST_KILL_FROM"
	// killAheadVar makes it report changes before it makes them.
	killAheadVar = "WEBHOOKCFG_TEST_KILL_AHEAD"
)

// Each writer of the process makes the changes of one client, one after the other. There
// are enough writers for batches of many changes.
const killWriters = 24

// nth is the n-th change of a client.
func nth(client string, n int) webhookcfg.Change {
	random := rand.New(rand.NewPCG(uint64(n), uint64(len(client))))
	entity := entities[random.IntN(len(entities))]
	switch random.IntN(8) {
	case 0:
		return hooktest.SetAll(client, n)
	case 1:
		return hooktest.UnsetAll(client, n)
	case 2, 3:
		return hooktest.Unset(client, entity, n)
	default:
		return hooktest.Set(client, entity, n)
	}
}

func writerName(w int) string { return clients[0] + strings.Repeat("+", w) }

// TestKill kills processes that change a store at random times, sometimes several before it
// checks the file. All changes that a process reported must be there, and at most one more
// per writer.
func TestKill(t *testing.T) {
	if path := os.Getenv(killPathVar); path != "" {
		beKilled(path)
	}
	t.Parallel()
	changes, err := killMany(t, *killRounds)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d processes killed; %d acknowledged changes all survived", *killRounds, changes)
}

// TestKillCanFail kills processes that report changes before they make them.
func TestKillCanFail(t *testing.T) {
	t.Parallel()
	if changes, err := killMany(t, 100, killAheadVar+"=3"); err == nil {
		t.Errorf("of %d changes that were reported too early, none was missed", changes)
	}
}

// killMany kills processes and compares the changes they reported with the store. It
// returns the number of reported changes.
func killMany(t *testing.T, rounds int, env ...string) (changes int, err error) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	models, done := make([]model, killWriters), make([]int, killWriters)
	for w := range models {
		models[w] = model{}
	}
	for round := range rounds {
		reported := killOne(t, path, done, random.IntN(200), env)
		for w := range done {
			for ; done[w] < reported[w]; done[w]++ {
				models[w].apply(nth(writerName(w), done[w]))
				changes++
			}
		}
		if random.IntN(3) == 0 && round < rounds-1 {
			continue
		}
		if err := checkKilled(path, models, done); err != nil {
			return changes, fmt.Errorf("round %d: %w", round, err)
		}
	}
	return changes, nil
}

// checkKilled compares the store with the models, each before or after its next change.
func checkKilled(path string, models []model, done []int) error {
	file, err := store.OpenFile(path, nil)
	if err != nil {
		return err
	}
	defer file.Close()
	for w, m := range models {
		next := m.clone()
		next.apply(nth(writerName(w), done[w]))
		got, want, or := observe(file, writerName(w)), m.show(writerName(w)), next.show(writerName(w))
		if got != want && got != or {
			return fmt.Errorf("writer %d after %d changes:\n%swant\n%sor\n%s", w, done[w], got, want, or)
		}
	}
	return nil
}

// killOne starts a process, kills it after it printed a number of lines, and returns the
// number of changes that it reported for each writer.
func killOne(t *testing.T, path string, from []int, lines int, env []string) []int {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), killPathVar+"="+path, killFromVar+"="+strings.Trim(fmt.Sprint(from), "[]"))
	child.Env = append(child.Env, env...)
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	reported := append([]int{}, from...)
	reader := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == lines {
			_ = child.Process.Kill()
		}
		line, err := reader.ReadString('\n')
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "opening") {
			continue
		}
		var w, count int
		if _, err := fmt.Sscan(line, &w, &count); err != nil {
			t.Fatalf("the process printed %q", line)
		}
		reported[w] = count
	}
	_, _ = io.Copy(io.Discard, reader)
	_ = child.Wait()
	if complaints.Len() > 0 {
		t.Fatalf("the process failed: %s", &complaints)
	}
	return reported
}

// beKilled changes the store until it is killed, and reports each change.
func beKilled(path string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("opening")
	file, err := store.OpenFile(path, nil)
	if err != nil {
		fail(err)
	}
	from := strings.Fields(os.Getenv(killFromVar))
	ahead, _ := strconv.Atoi(os.Getenv(killAheadVar))
	var all sync.WaitGroup
	for w := range killWriters {
		first, err := strconv.Atoi(from[w])
		if err != nil {
			fail(err)
		}
		all.Go(func() {
			for n := first; ; n++ {
				if err := file.Apply(context.Background(), nth(writerName(w), n)); err != nil {
					fail(err)
				}
				fmt.Println(w, n+1+ahead)
			}
		})
	}
	all.Go(func() {
		for {
			if err := file.Compact(context.Background()); err != nil {
				fail(err)
			}
		}
	})
	all.Wait()
}
