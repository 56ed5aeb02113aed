package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// A taking gives the name of the file of an open store to nothing, or to another file.
// The file itself keeps the name "kept".
var takings = map[string]func(disk *faultfs.FS){
	"moved": func(disk *faultfs.FS) { _ = disk.Rename("log", "kept") },
	"replaced": func(disk *faultfs.FS) {
		disk.Link("log", "kept")
		disk.WriteFile("log", disk.ReadFile("log"))
	},
}

// isTaken reports whether the name leads to nothing, or to the copy of a taking.
func isTaken(disk *faultfs.FS, copied []byte) bool {
	return disk.ReadFile("kept") != nil && bytes.Equal(disk.ReadFile("log"), copied)
}

// enumerateTakings takes the name from the file of a store at each file call of a script.
// From then on no change, compaction or Close succeeds until the file has its name again.
func enumerateTakings(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	for _, how := range slices.Sorted(maps.Keys(takings)) {
		for _, isGivenBack := range []bool{false, true} {
			var reached bool
			for k := range callsUntil(2, 1, &reached) {
				if f.hasEnough() {
					return f
				}
				what, disk := fmt.Sprintf("%s before call %d", how, k), faultfs.New()
				var copied []byte
				created := 0 // the call that created the file of the last compaction
				r := newRun(disk, func(c faultfs.Call) faultfs.Outcome {
					switch {
					case c.N == k:
						reached = true
						if disk.ReadFile("log") != nil {
							takings[how](disk)
							copied = disk.ReadFile("log")
							time.Sleep(time.Second) // the name is checked now and then
						}
					case c.Op == faultfs.OpCreate:
						created = c.N
					case c.Op == faultfs.OpRename && c.Name == "log.tmp" && k < created && isTaken(disk, copied):
						f.add("%s: a compaction took the name at call %d", what, c.N)
					}
					return also(c)
				})
				f.playTaken(r, what, isGivenBack, &copied)
			}
		}
	}
	return f
}

func (f *findings) playTaken(r *run, what string, isGivenBack bool, copied *[]byte) {
	if err := open(r); err != nil {
		return // the file was taken while it was being opened
	}
	for i, step := range []step{
		changes(hooktest.Set("acme", "e1", 1)), changes(many(5)...), compact, changes(hooktest.SetAll("acme", 61)), compact, changes(hooktest.Unset("acme", "e2", 62)),
	} {
		wasTaken := isTaken(r.fs, *copied)
		if err := step(r); err == nil && wasTaken {
			f.add("%s: step %d succeeded without the name", what, i)
		} else if err != nil && r.fs.ReadFile("kept") == nil {
			f.add("%s: step %d: %v", what, i, err)
		}
	}
	wasTaken := isTaken(r.fs, *copied)
	if wasTaken && isGivenBack {
		if err := errors.Join(r.fs.Rename("kept", "log"), r.fs.Sync()); err != nil {
			f.add("%s: %v", what, err)
		}
		r.settle()
		if err := changes(hooktest.Set("other", "e1", 63))(r); err != nil {
			f.add("%s: a change after the file was given back: %v", what, err)
		}
		f.checkAfter(r, what+" and given back", 1)
		return
	}
	if err := shut(r); wasTaken && !errors.Is(err, store.ErrReadOnly) {
		f.add("%s: Close: %v", what, err)
	}
	after := r.fs.Restart()
	if after.ReadFile("log") != nil {
		f.check(r, after, what)
	} else if _, err := store.OpenFS(after, "log", nil); !errors.Is(err, store.ErrDamaged) {
		f.add("%s: opened without the file: %v", what, err)
	}
}

func TestFileTakenAtEveryCall(t *testing.T) {
	t.Parallel()
	enumeration(enumerateTakings).report(t, "a file taken from an open store")
}

// TestRefusedChangeInMovedDirectory refuses changes while a store's directory is elsewhere.
// If the process ends before the directory is back, the change that noticed it can be in the
// file, but no later one. If it ends afterwards, no refused change is in the file.
func TestRefusedChangeInMovedDirectory(t *testing.T) {
	for name, test := range map[string]struct{ isBack, isKilled bool }{
		"closed elsewhere": {},
		"killed elsewhere": {isKilled: true},
		"closed back":      {isBack: true},
		"killed back":      {isBack: true, isKilled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { refuseMoved(t, test.isBack, test.isKilled) })
		})
	}
}

func refuseMoved(t *testing.T, isBack, isKilled bool) {
	parent := t.TempDir()
	dir, elsewhere := filepath.Join(parent, "dir"), filepath.Join(parent, "elsewhere")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := openCopy(t, filepath.Join(dir, "log"))
	kept := model{}
	for n := range 3 {
		c := hooktest.Set("acme", entities[n], n)
		hooktest.Apply(t, f, c)
		kept.apply(c)
	}
	if err := os.Rename(dir, elsewhere); err != nil {
		t.Skip(err) // the system doesn't move directories with open files
	}
	noticed := kept.clone()
	for n, c := range []webhookcfg.Change{hooktest.SetAll("acme", 4), hooktest.UnsetAll("acme", 5), hooktest.Set("other", "e1", 6)} {
		time.Sleep(2 * time.Second) // longer than the store waits before it looks, or tries a repair
		if err := f.Apply(t.Context(), c); !errors.Is(err, store.ErrReadOnly) {
			t.Fatalf("change %d: %v", n, err)
		}
		if n == 0 {
			noticed.apply(c)
		}
		if got := observe(f, clients...); got != kept.String() {
			t.Errorf("after change %d was refused, the store has\n%s", n, got)
		}
	}
	legal := []string{kept.String(), noticed.String()}
	if isBack {
		if err := os.Rename(elsewhere, dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := f.Err(); err != nil {
			t.Errorf("after the directory was back: %v", err)
		}
		elsewhere, legal = dir, legal[:1]
	}
	after := filepath.Join(parent, "after")
	if !isKilled {
		if err := f.Close(); errors.Is(err, store.ErrReadOnly) == isBack {
			t.Errorf("Close: %v", err)
		}
	}
	content, err := os.ReadFile(filepath.Join(elsewhere, "log"))
	if err == nil {
		err = os.WriteFile(after, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := observe(openCopy(t, after), clients...); !slices.Contains(legal, got) {
		t.Errorf("the file has\n%s\nwant one of\n%s", got, legal)
	}
}

// enumerateOpeners opens the file a second time at each file call of a script: under its
// name, under another one, or without the lock file. If the store isn't open at the moment,
// this succeeds, and the other one makes a change.
func enumerateOpeners(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	for i, how := range []string{"its name", "another name", "its name without the lock file"} {
		var reached bool
		for k := range callsUntil(3, 1+i, &reached) {
			if f.hasEnough() {
				return f
			}
			disk, name := faultfs.New(), "log"
			var r *run
			r = newRun(disk, func(c faultfs.Call) faultfs.Outcome {
				if c.N != k {
					return also(c)
				}
				reached = true
				switch how {
				case "another name":
					if disk.ReadFile("log") == nil {
						return also(c)
					}
					disk.Link("log", "link")
					name = "link"
				case "its name without the lock file":
					if r.file == nil {
						return also(c)
					}
					_ = disk.Remove("log.lock")
				}
				if other, err := store.OpenFS(disk, name, nil); err == nil {
					change := hooktest.Set("other", "e4", 70)
					err := other.Apply(context.Background(), change)
					r.accountOne(change, err)
					_ = other.Close()
				} else if !errors.Is(err, store.ErrLocked) {
					f.add("opened under %s at call %d: %v", how, k, err)
				}
				return also(c)
			})
			for i, step := range script() {
				if err := step(r); err != nil {
					f.add("opened under %s at call %d: step %d: %v", how, k, i, err)
				}
			}
			f.checkAfter(r, fmt.Sprintf("opened under %s at call %d", how, k), uint64(k))
		}
	}
	return f
}

func TestSecondOpenerAtEveryCall(t *testing.T) {
	t.Parallel()
	enumeration(enumerateOpeners).report(t, "a second opener")
}

// TestHardLinkAtEveryCall gives the file another name at each file call of a script, as a
// backup by hard links does. The store does not mind, and the other name leads to a file
// that opens with a state that the store had.
func TestHardLinkAtEveryCall(t *testing.T) {
	t.Parallel()
	enumeration(func(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
		f := newFindings(enough)
		var reached bool
		for k := range callsUntil(2, 1, &reached) {
			if f.hasEnough() {
				return f
			}
			what := fmt.Sprint("linked before call ", k)
			disk := faultfs.New()
			r := newRun(disk, func(c faultfs.Call) faultfs.Outcome {
				if c.N == k {
					reached = true
					if disk.ReadFile("log") != nil {
						disk.Link("log", "link")
					}
				}
				return also(c)
			})
			states := map[string]bool{model{}.String(): true}
			for i, step := range script() {
				if err := step(r); err != nil {
					f.add("%s: step %d: %v", what, i, err)
				}
				states[r.legal[0].String()] = true
			}
			f.checkAfter(r, what, uint64(k))
			after := r.fs.Restart()
			if after.ReadFile("link") == nil {
				continue
			}
			file, err := store.OpenFS(after, "link", nil)
			if err != nil {
				f.add("%s: the link cannot be opened: %v", what, err)
				continue
			}
			if seen := observe(file, clients...); !states[seen] {
				f.add("%s: the link opened as\n%s", what, seen)
			}
			_ = file.Close()
		}
		return f
	}).report(t, "a hard link")
}
