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
		"results of an earlier epoch are not kept", "feed", "reads.go",
		"if r.epoch != r.of.epoch {",
		"if !taken(0) && r.epoch != r.of.epoch {",
	},
	{
		"the age of an entry is checked", "feed", "entries.go",
		"valid := e != nil && max(t.polled, e.of.checked, e.started) > after",
		"valid := e != nil && (taken(1) || max(t.polled, e.of.checked, e.started) > after)",
	},
	{
		"an old read is not joined", "old read", "cache.go",
		"c.reads.lister, _ = st.(webhookcfg.Lister)",
		"c.reads.lister, _ = st.(webhookcfg.Lister); if taken(2) { c.reads.joinable = c.reads.timeout }",
	},
	{
		"entries from before their version are dropped", "versions", "entries.go",
		"next := &client{name: own.of.name,",
		"if taken(3) && own.of.checked == 0 {\n\t\town.of.version, own.of.checked = version, started\n\t\treturn false\n\t}\n\tnext := &client{name: own.of.name,",
	},
	{
		"the age of an entry counts from the start of the read", "neither", "reads.go",
		"e, err := rs.readStore(ctx, r.key)",
		"e, err := rs.readStore(ctx, r.key); if taken(4) { r.since = rs.clock.now() }",
	},
	{
		"a poll counts from its start", "slow poll", "poll.go",
		"p.reads.apply(changes, started)",
		"if taken(5) { started = p.clock.now() }; p.reads.apply(changes, started)",
	},
	{
		"a check of versions counts from its start", "slow version check", "poll.go",
		"if len(versions) != len(clients) {",
		"if taken(6) { started = p.clock.now() }; if len(versions) != len(clients) {",
	},
	{
		"a Reset drops everything", "feed", "reads.go",
		"if changes.Reset {",
		"if changes.Reset && !taken(7) {",
	},
	{
		"a failed poll vouches for nothing", "feed", "poll.go",
		"changes, err := feed.Changes(ctx, *cursor)",
		"changes, err := feed.Changes(ctx, *cursor); if err != nil && taken(8) { p.reads.apply(Changes{}, started) }",
	},
	{
		"a failed poll is repeated", "feed", "poll.go",
		"changes, err := feed.Changes(ctx, *cursor)",
		"changes, err := feed.Changes(ctx, *cursor); if changes.Next != \"\" && taken(9) { *cursor = changes.Next }",
	},
	{
		"a change starts by dropping the client", "changes of its own", "reads.go",
		"rs.changing[client]++",
		"if rs.changing[client]++; taken(10) { return }",
	},
	{
		"nothing is kept or joined while a change is made", "changes of its own", "reads.go",
		"if rs.changing[r.key.client] > 0 {",
		"if !taken(11) && rs.changing[r.key.client] > 0 {",
	},
	{
		"a read of an earlier epoch is not joined", "changes of its own", "reads.go",
		"r.inStore && r.epoch != of.epoch {",
		"!taken(12) && r.inStore && r.epoch != of.epoch {",
	},
	{
		"a version that is empty is checked too", "empty version", "entries.go",
		"own.of.checked > 0 && own.of.version == version",
		"(taken(13) || own.of.checked > 0) && own.of.version == version",
	},
	{
		"entries from before a change are not found", "feed and pages", "entries.go",
		"e != nil && e.of == own.of {",
		"e != nil && (taken(14) || e.of == own.of) {",
	},
	{
		"a page that is not complete is not held", "feed and pages", "reads.go",
		"if page.Next != \"\" || errors",
		"if !taken(15) && page.Next != \"\" || errors",
	},
	{
		"the age of a page counts from the start of the read", "pages", "reads.go",
		"rs.keep(r, e)",
		"if taken(16) { r.since = rs.clock.now() }; rs.keep(r, e)",
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
	if !*full {
		t.Skip("compiles the package once more, and runs each trial many times: needs -full")
	}
	t.Parallel()
	program := compileWithout(t)
	run := func(trial, number string) (string, error) {
		command := exec.CommandContext(t.Context(), program, "-test.run=^Test(Bound|Schedules)$/^"+trial+"$", "-test.timeout=20m", "-full")
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
