package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
)

// writeStore creates a closed store with n changes and returns its path and content.
func writeStore(t *testing.T, n int) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "webhooks.jsonl")
	file := openFile(t, path, &store.FileOptions{CompactManually: true})
	for i := range n {
		hooktest.Apply(t, file, nth("acme", i))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

// after returns the state after the changes 0 to n-1, except for some.
func after(n int, without ...int) model {
	m := model{}
	for i := range n {
		if !slices.Contains(without, i) {
			m.apply(nth("acme", i))
		}
	}
	return m
}

func show(t *testing.T, path string) string {
	t.Helper()
	file := openFile(t, path, nil)
	defer file.Close()
	return observe(file, clients...)
}

// TestBackupsWhileWritersRun makes backups while writers make changes and the file is
// compacted. Each backup must have all changes acknowledged before it. If it lacks one of a
// writer, it can't have the writer's next one either.
func TestBackupsWhileWritersRun(t *testing.T) {
	dir := t.TempDir()
	file := openFile(t, filepath.Join(dir, "webhooks.jsonl"), &store.FileOptions{CompactManually: true})
	const writers = 8
	var made [writers]atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := file.Apply(context.Background(), nth(writerName(w), n)); err != nil {
					t.Error(err)
					return
				}
				made[w].Store(int64(n) + 1)
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if err := file.Compact(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	})
	for n := range 10 {
		var before, after [writers]int
		for w := range writers {
			before[w] = int(made[w].Load())
		}
		path := filepath.Join(dir, fmt.Sprint("copy", n))
		if err := file.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		for w := range writers {
			after[w] = int(made[w].Load()) + 1 // it may not be counted yet
		}
		backup := openFile(t, path, nil)
		for w := range writers {
			name, m, n := writerName(w), model{}, 0
			got := observe(backup, name)
			isLegal := func() bool { return n >= before[w] && got == m.show(name) }
			for ; n < after[w] && !isLegal(); n++ {
				m.apply(nth(name, n))
			}
			if !isLegal() {
				t.Errorf("writer %d made %d to %d changes, but the backup shows\n%s", w, before[w], after[w], got)
			}
		}
		if err := backup.Close(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	all.Wait()
}

// TestFormerFileStaysAsItWas: a hard link to the file, or a copy that is read slowly, is
// complete also if a compaction replaces the file meanwhile.
func TestFormerFileStaysAsItWas(t *testing.T) {
	path, content := writeStore(t, 500)
	link, copied := path+".link", path+".copy"
	if err := os.Link(path, link); err != nil {
		t.Skip(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	first := make([]byte, len(content)/2)
	if _, err := io.ReadFull(reader, first); err != nil {
		t.Fatal(err)
	}
	want := show(t, path)
	file := openFile(t, path, nil)
	if err := file.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	hooktest.Apply(t, file, hooktest.UnsetAll("acme", 1))
	second, err := io.ReadAll(reader)
	if err == nil {
		err = os.WriteFile(copied, append(first, second...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, copied} {
		if got := show(t, path); got != want {
			t.Errorf("%s has\n%swant\n%s", path, got, want)
		}
	}
}

// TestBackupRefusals: nothing is replaced or left behind, and the store goes on.
func TestBackupRefusals(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "webhooks.jsonl"), t.TempDir()
	file := openFile(t, path, nil)
	hooktest.Apply(t, file, hooktest.SetAll("acme", 1))
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx  context.Context
		path string
		is   error
		says string
	}{
		{t.Context(), path, nil, "the store's own file"},
		{t.Context(), taken, fs.ErrExist, "taken"},
		{t.Context(), filepath.Join(dir, "missing", "copy"), fs.ErrNotExist, "missing"},
		{t.Context(), filepath.Join(dir, "copy.tmp"), nil, "copy.tmp"},
		{t.Context(), path + ".lock", nil, ".lock"},
		{t.Context(), dir + string(filepath.Separator), nil, "not the path of a file"},
		{cancelled, filepath.Join(dir, "copy"), context.Canceled, ""},
	} {
		err := file.Backup(test.ctx, test.path)
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.HasPrefix(err.Error(), "store: backup to ") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Backup to %s: %v", test.path, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	if got, err := os.ReadFile(taken); err != nil || string(got) != "precious" {
		t.Errorf("the file is now %q, %v", got, err)
	}
	hooktest.Apply(t, file, hooktest.SetAll("acme", 2))
	if err := file.Backup(t.Context(), filepath.Join(dir, "copy")); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Backup(t.Context(), filepath.Join(dir, "late")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Backup after Close: %v", err)
	}
}

func TestSalvageKeepsIntactChanges(t *testing.T) {
	path, content := writeStore(t, 50)
	lines := bytes.SplitAfter(content, []byte("\n"))
	lines[2+20][30] ^= 1
	copy(lines[0], make([]byte, len(lines[0])))
	copy(lines[1], make([]byte, len(lines[1])))
	damaged := slices.Concat(lines...)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenFile(path, nil); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "store.SalvageFile") {
		t.Errorf("OpenFile: %v", err)
	}
	if _, err := store.CheckFile(t.Context(), path, nil); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Check: %v", err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh.jsonl")
	r, err := store.SalvageFile(t.Context(), path, fresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := len(bytes.Join(lines[:22], nil))
	want := store.FileReport{
		Bytes: int64(len(content)), Changes: 49, LostRegions: 2, LostBytes: int64(len(lines[0]) + len(lines[1]) + len(lines[22])),
		Lost: []store.FileRegion{{1, 0, int64(len(lines[0]) + len(lines[1]))}, {21, int64(at), int64(len(lines[22]))}},
	}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("the report is %+v, want %+v", r, want)
	}
	if got, want := show(t, fresh), after(50, 20).String(); got != want {
		t.Errorf("salvaged\n%swant\n%s", got, want)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, damaged) {
		t.Errorf("the damaged file was changed: %v", err)
	}
}

func TestSalvageReportIsBounded(t *testing.T) {
	path, content := writeStore(t, 500)
	for i := range content {
		if content[i] == '\n' && i > 300 && bytes.Count(content[:i], []byte("\n"))%2 == 0 {
			content[i-2] ^= 1 // of every second line
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := store.SalvageFile(t.Context(), path, path+".fresh", nil)
	if err != nil || len(r.Lost) != 100 || r.LostRegions != 500-r.Changes || r.LostRegions < 240 || r.LostBytes < int64(len(content))*2/5 {
		t.Errorf("%d regions of %d bytes, %d listed, %d changes kept: %v", r.LostRegions, r.LostBytes, len(r.Lost), r.Changes, err)
	}
}

// TestSalvageJoinsLostRegions repeats lines 10 to 12 after line 30: the three records, each
// of them lost, are one region.
func TestSalvageJoinsLostRegions(t *testing.T) {
	path, content := writeStore(t, 50)
	lines := bytes.SplitAfter(content, []byte("\n"))
	before, repeated := bytes.Join(lines[:30], nil), bytes.Join(lines[9:12], nil)
	if err := os.WriteFile(path, slices.Concat(before, repeated, content[len(before):]), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := store.SalvageFile(t.Context(), path, path+".fresh", nil)
	want := store.FileRegion{Line: 31, Offset: int64(len(before)), Length: int64(len(repeated))}
	if err != nil || !slices.Equal(r.Lost, []store.FileRegion{want}) || r.LostRegions != 1 || r.LostBytes != want.Length {
		t.Errorf("%+v, %v; want the region %+v", r, err, want)
	}
}

// TestSalvageAndCheckRefusals: a refused file stays as it is, and nothing is created.
func TestSalvageAndCheckRefusals(t *testing.T) {
	path, content := writeStore(t, 3)
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, _ := writeStore(t, 3)
	openFile(t, held, nil)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	fresh := filepath.Join(dir, "fresh")
	for _, test := range []struct {
		ctx           context.Context
		damaged, path string
		is            error
	}{
		{t.Context(), path, taken, fs.ErrExist},
		{t.Context(), path, path, fs.ErrExist},
		{t.Context(), path, filepath.Join(dir, "missing", "fresh"), fs.ErrNotExist},
		{t.Context(), path, filepath.Join(dir, "fresh.tmp"), nil},
		{t.Context(), path, dir + string(filepath.Separator), nil},
		{t.Context(), path + ".missing", fresh, fs.ErrNotExist},
		{t.Context(), filepath.Join(dir, "missing", "damaged"), fresh, fs.ErrNotExist},
		{t.Context(), held, fresh, store.ErrLocked},
		{t.Context(), taken, fresh, store.ErrDamaged},
		{cancelled, path, fresh, context.Canceled},
	} {
		_, err := store.SalvageFile(test.ctx, test.damaged, test.path, nil)
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.HasPrefix(err.Error(), "store: salvaging ") {
			t.Errorf("Salvage of %s to %s: %v", test.damaged, test.path, err)
		}
		if test.path == fresh {
			if _, err := store.CheckFile(test.ctx, test.damaged, nil); !errors.Is(err, test.is) || !strings.HasPrefix(err.Error(), "store: checking ") {
				t.Errorf("Check of %s: %v", test.damaged, err)
			}
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestSharedDirectoriesAreRefused: nothing is written that another user could replace.
func TestSharedDirectoriesAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no modes here")
	}
	path, _ := writeStore(t, 3)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "fresh")
	if _, err := store.SalvageFile(t.Context(), path, fresh, nil); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Salvage: %v", err)
	}
	file := openFile(t, path, nil)
	if err := file.Backup(t.Context(), fresh); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Backup: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	shared := &store.FileOptions{AllowShared: true}
	if _, err := store.SalvageFile(t.Context(), path, fresh, shared); err != nil {
		t.Errorf("Salvage, shared: %v", err)
	}
	if err := openFile(t, path, shared).Backup(t.Context(), filepath.Join(dir, "copy")); err != nil {
		t.Errorf("Backup, shared: %v", err)
	}
}

func TestCheckReportsATornTail(t *testing.T) {
	path, content := writeStore(t, 3)
	if r, err := store.CheckFile(t.Context(), path, nil); err != nil || r.Changes != 3 || r.Bytes != int64(len(content)) || r.LostRegions != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	torn := append(bytes.Clone(content), `{"op":"se`...)
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := store.CheckFile(t.Context(), path, nil)
	if want := []store.FileRegion{{6, int64(len(content)), 9}}; err != nil || r.Changes != 3 || !slices.Equal(r.Lost, want) || r.LostBytes != 9 {
		t.Errorf("%+v, %v", r, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, torn) {
		t.Errorf("the file was changed: %v", err)
	}
}
