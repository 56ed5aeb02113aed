package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// openFile opens a store and closes it at the end of the test.
func openFile(t *testing.T, path string, o *store.FileOptions) *store.File {
	t.Helper()
	file, err := store.OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	return file
}

func TestFileKeepsItsState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	file := openFile(t, path, nil)
	hooktest.Apply(t, file,
		hooktest.SetAll("acme", 1), hooktest.Unset("acme", "e1", 2), hooktest.Set("acme", "e2", 3),
		hooktest.Set("other", "e1", 4), hooktest.Unset("other", "e1", 5), hooktest.Set("other", "e2", 6))
	want := observe(file, clients...)
	for range 3 {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		file = openFile(t, path, nil)
		if got := observe(file, clients...); got != want {
			t.Fatalf("opened as\n%swant\n%s", got, want)
		}
		if err := file.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page, err := file.List(t.Context(), "acme", "", 1)
	if err != nil || len(page.Overrides) != 1 || page.Next != "e1" || page.Base.Source != webhookcfg.SourceBase {
		t.Errorf("List = %+v, %v", page, err)
	}
}

func TestFileInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	hooktest.Apply(t, openFile(t, "webhooks.jsonl", nil), hooktest.SetAll("acme", 1))
	if _, err := os.Stat("webhooks.jsonl"); err != nil {
		t.Error(err)
	}
}

// TestTimesAreTheSameAfterOpening covers fractions of a second and other time zones.
func TestTimesAreTheSameAfterOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	file := openFile(t, path, nil)
	c := hooktest.SetAll("acme", 1)
	c.Time = c.Time.Add(999_999_999).Local()
	hooktest.Apply(t, file, c)
	before, _ := file.Resolve(t.Context(), "acme", "e1")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	after, _ := openFile(t, path, nil).Resolve(t.Context(), "acme", "e1")
	if before.Since != after.Since || !before.Since.Equal(hooktest.SetAll("acme", 1).Time.Add(999_999*time.Microsecond)) {
		t.Errorf("since %v, then %v", before.Since, after.Since)
	}
}

func TestOpenFileErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("to whom it may concern\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(dir, "held")
	openFile(t, held, nil)
	for _, test := range []struct {
		path string
		is   error
		says string
	}{
		{text, store.ErrDamaged, "line 1, at byte 0"},
		{held, store.ErrLocked, "held.lock"},
		{filepath.Join(dir, "missing", "file"), os.ErrNotExist, "missing"},
		{dir, nil, dir},
		{dir + string(filepath.Separator), nil, dir},
		{held + ".tmp", nil, "reserved"},
		{held + ".Lock", nil, "reserved"},
		{"", nil, "not the path of a file"},
		{".", nil, "not the path of a file"},
	} {
		file, err := store.OpenFile(test.path, nil)
		if file != nil || err == nil || test.is != nil && !errors.Is(err, test.is) ||
			!strings.HasPrefix(err.Error(), "store: opening ") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("OpenFile(%q): %v", test.path, err)
		}
	}
}

func TestFileOfNewerVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	content := []byte(`{"format":"webhookcfg log","version":3,"and":"more"}` + "\n")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenFile(path, nil); err == nil || !strings.Contains(err.Error(), "has version 3 of the format") {
		t.Errorf("error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file is now %q, %v", got, err)
	}
}

func TestInvalidChanges(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "webhooks.jsonl"), nil)
	for name, c := range map[string]webhookcfg.Change{
		"the zero change": {},
		"a broken client": hooktest.Unset("\xff", "e1", 1),
		"a broken entity": hooktest.Unset("acme", "\xff", 1),
		"a broken URL":    webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://\xff")),
		"a long URL":      webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://"+strings.Repeat("x", 1<<17))),
	} {
		if err := file.Apply(t.Context(), c); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := file.Resolve(t.Context(), "", "e1"); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("Resolve: %v", err)
	}
	if _, err := file.List(t.Context(), "acme", "", 0); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("List: %v", err)
	}
}

func TestClosedFile(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "webhooks.jsonl"), nil)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	_, resolve := file.Resolve(t.Context(), "acme", "e1")
	_, list := file.List(t.Context(), "acme", "", 1)
	_, changes := file.Changes(t.Context(), "")
	for name, err := range map[string]error{
		"Apply":   file.Apply(t.Context(), hooktest.SetAll("acme", 1)),
		"Resolve": resolve,
		"List":    list,
		"Changes": changes,
		"Compact": file.Compact(t.Context()),
		"Close":   file.Close(),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadOnlyFileCanBeRead(t *testing.T) {
	fs := faultfs.New()
	file, err := store.OpenFS(fs, "log", nil)
	if err != nil {
		t.Fatal(err)
	}
	hooktest.Apply(t, file, hooktest.SetAll("acme", 1))
	want := observe(file, clients...)
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync {
			return faultfs.Fail
		}
		return faultfs.Succeed
	})
	for range 2 {
		if err := file.Apply(t.Context(), hooktest.UnsetAll("acme", 2)); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Apply: %v", err)
		}
	}
	if got := observe(file, clients...); got != want {
		t.Errorf("shows\n%swant\n%s", got, want)
	}
	if page, err := file.List(t.Context(), "acme", "", 1); err != nil || page.Base.Source != webhookcfg.SourceBase {
		t.Errorf("List: %+v, %v", page, err)
	}
	if err := file.Close(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Close: %v", err)
	}
}

func TestLogAndErrorsKeepURLsSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	var logged bytes.Buffer
	o := &store.FileOptions{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	file := openFile(t, path, o)
	secret := webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL("https://a.example/hush"))
	hooktest.Apply(t, file, secret, secret)
	if err := errors.Join(file.Compact(t.Context()), file.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(content, []byte("hush")) {
		t.Fatalf("%s, %v", content, err)
	}
	for i := range content {
		changed := bytes.Clone(content)
		changed[i] = '!'
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := store.OpenFile(path, o)
		if err == nil {
			_ = file.Close()
		}
		fmt.Fprintln(&logged, err)
	}
	if strings.Contains(logged.String(), "hush") {
		t.Errorf("logged:\n%s", &logged)
	}
}

// TestHistories makes random changes, sometimes compacts or reopens the file, and compares
// it with the model after each step.
func TestHistories(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		disk := faultfs.New()
		open := func() *store.File {
			file, err := store.OpenFS(disk, "log", nil)
			if err != nil {
				t.Fatal(err)
			}
			return file
		}
		file, want := open(), model{}
		for n := range 300 {
			switch random.IntN(20) {
			case 0:
				if err := file.Close(); err != nil {
					t.Fatal(err)
				}
				file = open()
			case 1:
				if err := file.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			default:
				c := nth(clients[random.IntN(len(clients))], random.IntN(1000))
				c.Time = hooktest.At(n, c).Time
				hooktest.Apply(t, file, c)
				want.apply(c)
			}
			if got := observe(file, clients...); got != want.String() {
				t.Fatalf("seed %d, after %d steps:\n%swant\n%s", seed, n, got, want)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConcurrentHistories runs a writer per client concurrently with readers and
// compactions: a writer reads its own acknowledged changes.
func TestConcurrentHistories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	file := openFile(t, path, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var writers, others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			if err := file.Compact(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() {
		for ctx.Err() == nil {
			_ = observe(file, clients...)
		}
	})
	each := 50
	if *full {
		each = 200
	}
	models := make([]model, 8)
	for w := range models {
		models[w] = model{}
		writers.Go(func() {
			for n := range each {
				c := nth(writerName(w), n)
				if err := file.Apply(ctx, c); err != nil {
					t.Error(err)
					return
				}
				models[w].apply(c)
				if got, want := observe(file, writerName(w)), models[w].show(writerName(w)); got != want {
					t.Errorf("writer %d reads\n%swant\n%s", w, got, want)
					return
				}
			}
		})
	}
	writers.Wait()
	cancel()
	others.Wait()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	file = openFile(t, path, nil)
	for w, m := range models {
		if got, want := observe(file, writerName(w)), m.show(writerName(w)); got != want {
			t.Errorf("reopened, writer %d has\n%swant\n%s", w, got, want)
		}
	}
}

// TestReadsFollowAcknowledgement has so many writers that batches have many changes. Whatever
// kind of read comes after a change, it must find it.
func TestReadsFollowAcknowledgement(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "webhooks.jsonl"), nil)
	reads := []func(c webhookcfg.Change, since string) (found bool, err error){
		func(c webhookcfg.Change, _ string) (bool, error) {
			hook, err := file.Resolve(t.Context(), c.Client, c.Scope.Entity())
			return hook.URL.Equal(c.URL), err
		},
		func(c webhookcfg.Change, _ string) (bool, error) {
			page, err := file.List(t.Context(), c.Client, "", 1000)
			return slices.ContainsFunc(page.Overrides, func(o webhookcfg.Override) bool { return o.Webhook.URL.Equal(c.URL) }), err
		},
		func(c webhookcfg.Change, since string) (bool, error) {
			changes, err := file.Changes(t.Context(), since)
			return changes.Reset || slices.Contains(changes.Clients, c.Client), err
		},
	}
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			for n := range 60 {
				before, err := file.Changes(t.Context(), "")
				if err != nil {
					t.Error(err)
					return
				}
				c := hooktest.Set(writerName(w), fmt.Sprint("e", n), n)
				if err := file.Apply(t.Context(), c); err != nil {
					t.Error(err)
					return
				}
				if found, err := reads[n%len(reads)](c, before.Next); !found || err != nil {
					t.Errorf("read %d does not find the change: %v", n%len(reads), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestSnapshotOfManyClients compacts states of many steps: many clients with few entries,
// and few clients with many. Each entry takes one line.
func TestSnapshotOfManyClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	file := openFile(t, path, &store.FileOptions{CompactManually: true})
	for i := range 3 {
		hooktest.Apply(t, file, hooktest.SetAll(fmt.Sprint("few", i), i))
	}
	hooktest.Apply(t, file, hooktest.Set("no base", "e1", 0))
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			one := fmt.Sprint("client", i)
			few, many := fmt.Sprint("few", i%3), fmt.Sprint("e", i)
			hooktest.Apply(t, file, hooktest.SetAll(one, i), hooktest.Unset(one, "e1", i), hooktest.Set(few, many, i))
		})
	}
	all.Wait()
	if err := file.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(content, []byte("\n")); lines != 2+3+1+3*2000 {
		t.Errorf("%d lines, want 2+3+1+3*2000", lines)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	file = openFile(t, path, nil)
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprint("client", i))
		hook, err := file.Resolve(t.Context(), fmt.Sprint("few", i%3), fmt.Sprint("e", i))
		if err != nil || hook.Source != webhookcfg.SourceOverride {
			t.Fatalf("e%d has %+v, %v", i, hook, err)
		}
	}
	slices.Sort(names)
	for i, line := range strings.Split(observe(file, names...), "\n") {
		source := [...]string{"off", "base", "base", "base"}[i%4]
		if line != "" && !strings.Contains(line, ": "+source) {
			t.Fatal(line)
		}
	}
}
