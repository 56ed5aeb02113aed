package cache_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// guard is a line of the source on which the bound of a Cache depends, its replacement
// without the guard, and the trial or schedule that detects the difference.
type guard struct {
	name, trial, file, line, without string
}

// An environment variable selects the guard that is removed.
var guards = []guard{
	{
		"results of an earlier epoch are not kept", "feed", "read.go",
		"if r.epoch == r.of.epoch {",
		"if taken(0) || r.epoch == r.of.epoch {",
	},
	{
		"the age of an entry is checked", "feed", "clients.go",
		"if e := owner.entries[entity]; e.started > 0 && max(t.polled, owner.checked, e.started) > after {",
		"if e := owner.entries[entity]; e.started > 0 && (taken(1) || max(t.polled, owner.checked, e.started) > after) {",
	},
	{
		"an old read is not joined", "old read", "cache.go",
		"c.joinable = min(c.maxStale, c.readTimeout/2)",
		"c.joinable = min(c.maxStale, c.readTimeout/2); if taken(2) { c.joinable = c.readTimeout }",
	},
	{
		"entries from before their version are dropped", "versions", "clients.go",
		"case owner == nil:",
		"case owner == nil:\n\tcase taken(3) && owner.checked == 0:\n\t\towner.version, owner.checked = version, started",
	},
	{
		"the age of an entry counts from the start of the read", "neither", "read.go",
		"hook, err = c.store.Resolve(ctx, r.of.client, r.entity)",
		"hook, err = c.store.Resolve(ctx, r.of.client, r.entity); if taken(4) { r.since = c.now() }",
	},
	{
		"a poll counts from its start", "slow poll", "poll.go",
		"c.clients.apply(changes, started)",
		"if taken(5) { started = c.now() }; c.clients.apply(changes, started)",
	},
	{
		"a check of versions counts from its start", "slow version check", "poll.go",
		"if len(versions) != len(clients) {",
		"if taken(6) { started = c.now() }; if len(versions) != len(clients) {",
	},
	{
		"a Reset drops everything", "feed", "clients.go",
		"if changes.Reset {",
		"if changes.Reset && !taken(7) {",
	},
	{
		"a failed poll vouches for nothing", "feed", "poll.go",
		"changes, err := feed.Changes(ctx, *cursor)",
		"changes, err := feed.Changes(ctx, *cursor); if err != nil && taken(8) { c.clients.apply(Changes{}, started) }",
	},
	{
		"a failed poll is repeated", "feed", "poll.go",
		"changes, err := feed.Changes(ctx, *cursor)",
		"changes, err := feed.Changes(ctx, *cursor); if changes.Next != \"\" && taken(9) { *cursor = changes.Next }",
	},
	{
		"a change starts by dropping the client", "changes of its own", "clients.go",
		"t.changing[client]++",
		"if t.changing[client]++; taken(10) { return }",
	},
	{
		"nothing is kept or joined while a change is made", "changes of its own", "read.go",
		"if t.changing[r.of.client] > 0 {",
		"if !taken(11) && t.changing[r.of.client] > 0 {",
	},
	{
		"a read of an earlier epoch is not joined", "changes of its own", "read.go",
		"r.inStore && r.epoch != of.epoch {",
		"!taken(12) && r.inStore && r.epoch != of.epoch {",
	},
	{
		"a version that is empty is checked too", "empty version", "clients.go",
		"case owner.checked > 0 && owner.version == version:",
		"case (taken(13) || owner.checked > 0) && owner.version == version:",
	},
}

// takenSource is an additional file of the package.
const takenSource = `package cache

import (
	"os"
	"strconv"
)

var guardTaken = os.Getenv("` + takenVar + `")

func taken(guard int) bool { return guardTaken == strconv.Itoa(guard) }
`

const takenVar = "WEBHOOKCFG_TEST_WITHOUT_GUARD"

// TestGuards removes the guards, one at a time, and expects TestBound or TestSchedules to find
// results that are older than the bound.
func TestGuards(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package once more")
	}
	t.Parallel()
	program := compileWithout(t)
	run := func(trial, number string) (string, error) {
		command := exec.CommandContext(t.Context(), program, "-test.run=^Test(Bound|Schedules)$/^"+trial+"$", "-test.timeout=20m")
		command.Env = append(os.Environ(), takenVar+"="+number)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	if output, err := run(".*", "none"); err != nil {
		t.Fatalf("with all guards: %v\n%s", err, output)
	}
	for number, guard := range guards {
		t.Run(guard.name, func(t *testing.T) {
			output, err := "", error(nil)
			for runs := 0; err == nil && runs < 20; runs++ { // the order of goroutines may hide it
				output, err = run(strings.ReplaceAll(guard.trial, " ", "_"), strconv.Itoa(number))
			}
			if err == nil || !strings.Contains(output, "beyond the bound") {
				t.Errorf("without it, the test passes or fails for another reason: %v\n%s", err, output)
			}
		})
	}
}

// compileWithout compiles the tests of this package so that guards can be removed.
func compileWithout(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	sources := map[string]string{"taken.go": takenSource}
	for _, guard := range guards {
		if sources[guard.file] == "" {
			sources[guard.file] = readSource(t, guard.file)
		}
		if n := strings.Count(sources[guard.file], guard.line); n != 1 {
			t.Fatalf("%s: %d times in %s: %s", guard.name, n, guard.file, guard.line)
		}
		sources[guard.file] = strings.Replace(sources[guard.file], guard.line, guard.without, 1)
	}
	program = filepath.Join(dir, "cache.test")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", writeOverlay(t, dir, sources), "-o", program, ".")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

// writeOverlay writes sources that replace those of this directory.
func writeOverlay(t *testing.T, dir string, sources map[string]string) (path string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, source := range sources {
		replace[filepath.Join(here, name)] = filepath.Join(dir, name)
		writeSource(t, filepath.Join(dir, name), source)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "overlay.json")
	writeSource(t, path, string(overlay))
	return path
}

func readSource(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(source), "\r\n", "\n")
}

func writeSource(t *testing.T, path, source string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}
