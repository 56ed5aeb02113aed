package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
)

// enumerateOverwritings has another program overwrite the content of the file at each file
// call of a script. From then on, only an opening that was already under way can fail. No
// Close may succeed if the file then doesn't open with everything that was acknowledged.
func enumerateOverwritings(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	for i, how := range []string{"emptied", "cut", "restored"} {
		var reached bool
		for k := range callsUntil(3, 1+i, &reached) {
			if f.hasEnough() {
				return f
			}
			what, disk := fmt.Sprintf("%s before call %d", how, k), faultfs.New()
			var old []byte
			var r *run
			r = newRun(disk, func(c faultfs.Call) faultfs.Outcome {
				content := disk.ReadFile("log")
				if old == nil {
					old = content
				}
				if c.N != k {
					return also(c)
				}
				reached = true
				isUnnoticed := r.file == nil && (how == "restored" || c.Op == faultfs.OpClose) // while opening or closing
				if content == nil || isUnnoticed {
					return also(c)
				}
				disk.Overwrite("log", map[string][]byte{"emptied": nil, "cut": content[:len(content)/2], "restored": old}[how])
				time.Sleep(time.Second) // the file is checked now and then
				return also(c)
			})
			f.playOverwritten(r, what, &reached)
		}
	}
	return f
}

func (f *findings) playOverwritten(r *run, what string, reached *bool) {
	for i, step := range append(script(), changes(hooktest.Set("other", "e1", 63)), shut) {
		wasOpen, wasReached := r.file != nil, *reached
		err := step(r)
		switch {
		case err == nil:
		case !*reached:
			f.add("%s: step %d: %v", what, i, err)
			return
		case !wasReached && (!wasOpen || r.file == nil):
			return // overwritten during the opening or Close, which noticed it
		case !wasOpen:
			f.add("%s: step %d: the file does not open: %v", what, i, err)
			return
		}
		r.settle()
	}
	f.check(r, r.fs.Restart(), what)
}

func TestFileOverwrittenAtEveryCall(t *testing.T) {
	t.Parallel()
	enumeration(enumerateOverwritings).report(t, "an overwritten file of an open store")
}

// TestOverwrittenFile does to the file of an open store what log rotation and a hasty
// restore do.
func TestOverwrittenFile(t *testing.T) {
	for name, overwrite := range map[string]func(path, backup string) error{
		"truncated": func(path, _ string) error { return os.Truncate(path, 0) },
		"cut":       func(path, _ string) error { return os.Truncate(path, 400) },
		"restored": func(path, backup string) error {
			content, err := os.ReadFile(backup)
			return errors.Join(err, os.WriteFile(path, content, 0o600))
		},
	} {
		for _, isChanged := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "webhooks.jsonl")
			file := openFile(t, path, nil)
			hooktest.Apply(t, file, hooktest.SetAll("acme", 1))
			if err := file.Backup(t.Context(), path+".backup"); err != nil {
				t.Fatal(err)
			}
			hooktest.Apply(t, file, hooktest.Unset("acme", "e1", 2), hooktest.Set("other", "e1", 3))
			if err := overwrite(path, path+".backup"); err != nil {
				t.Fatal(err)
			}
			if isChanged {
				if err := file.Apply(t.Context(), hooktest.Set("acme", "e2", 4)); err != nil && !errors.Is(err, store.ErrReadOnly) {
					t.Errorf("%s: a change: %v", name, err)
				}
			}
			want := observe(file, clients...)
			if err := file.Close(); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
			if got := observe(openFile(t, path, nil), clients...); got != want {
				t.Errorf("%s: opened as\n%swant\n%s", name, got, want)
			}
		}
	}
}

// TestHiddenDirectory renames the directory of an open store and puts another one in its
// place, as mounting a volume does. Nothing is acknowledged that the next process would not
// find.
func TestHiddenDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(filepath.Join(dir, "webhooks.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".hidden"); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := file.Healthy(t.Context()); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "move it back") {
		t.Errorf("health: %v", err)
	}
	if err := file.Apply(t.Context(), hooktest.SetAll("acme", 1)); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "File.Backup") {
		t.Errorf("a change: %v", err)
	}
	if err := file.Err(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Err: %v", err)
	}
	if err := file.Close(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Close: %v", err)
	}
}
