package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// copied returns the changes of clients with a base, overrides and entities that are off.
func copied(clients int) (all []webhookcfg.Change) {
	for n := range clients {
		client := fmt.Sprintf("client %d", n)
		all = append(all, hooktest.SetAll(client, n), hooktest.Set(client, "e1", n+1), hooktest.Unset(client, "e2", n+2))
	}
	return all
}

// requireEqual fails unless dst has what src has.
func requireEqual(t testing.TB, what string, dst, src webhookcfg.Store) {
	t.Helper()
	report, err := admin.Verify(context.Background(), dst, src, nil)
	if err != nil || report.Different > 0 {
		t.Fatalf("%s: %d differences, %v, %v", what, report.Different, report.Differences, err)
	}
}

// TestCopyToFailingFile: a copy either returns an error or is complete, regardless of which
// file system call fails or is the last one. When the next process repeats it, it's complete.
func TestCopyToFailingFile(t *testing.T) {
	src := store.NewMemory()
	hooktest.Apply(t, src, copied(5)...)
	replace := &admin.CopyOptions{Workers: 3, Replace: true}
	failed := 0
	for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter, faultfs.Stop} {
		for k, reached := 1, true; reached; k++ {
			reached = false
			synctest.Test(t, func(t *testing.T) {
				what := fmt.Sprintf("outcome %v of call %d", outcome, k)
				disk := faultfs.New()
				disk.Decide(func(c faultfs.Call) faultfs.Outcome {
					if c.N != k {
						return faultfs.Succeed
					}
					reached = true
					return outcome
				})
				if dst, err := store.OpenFS(disk, "log", nil); err == nil {
					report, err := admin.Copy(context.Background(), dst, src, replace)
					switch {
					case err == nil:
						requireEqual(t, what, dst, src)
					case !errors.Is(err, store.ErrReadOnly) || len(report.Partial) == 0:
						t.Errorf("%s: %+v, %v", what, report, err)
					default:
						failed++
					}
					_ = dst.Close()
				}
				dst, err := store.OpenFS(disk.Restart(), "log", nil)
				if err != nil {
					t.Fatalf("%s: reopened: %v", what, err)
				}
				defer dst.Close()
				if _, err := admin.Copy(context.Background(), dst, src, replace); err != nil {
					t.Errorf("%s: repeated: %v", what, err)
				}
				requireEqual(t, what, dst, src)
			})
		}
	}
	if failed < 10 {
		t.Errorf("only %d copies failed", failed)
	}
}

func openCopy(t testing.TB, path string) *store.File {
	t.Helper()
	f, err := store.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestExport: a copy to a file is an export. Imported and exported again, its backup is the same
// byte for byte. Names that a file can't have are reported.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	first, memory, last := openCopy(t, filepath.Join(dir, "first")), store.NewMemory(), openCopy(t, filepath.Join(dir, "last"))
	hooktest.Apply(t, first, copied(200)...)
	for _, step := range [][2]webhookcfg.Store{{memory, first}, {last, memory}} {
		if report, err := admin.Copy(t.Context(), step[0], step[1], nil); err != nil || report.Different > 0 {
			t.Fatal(report, err)
		}
	}
	var backups [][]byte
	for n, f := range []*store.File{first, last} {
		path := filepath.Join(dir, fmt.Sprint("backup ", n))
		if err := f.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		backup, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		backups = append(backups, backup)
	}
	if !bytes.Equal(backups[0], backups[1]) {
		t.Error("the backups differ")
	}
	hooktest.Apply(t, memory, hooktest.SetAll("\xff", 1), hooktest.Set("client 1", "\xff", 2))
	report, err := admin.Copy(t.Context(), last, memory, &admin.CopyOptions{Replace: true})
	if err != nil || report.Different != 2 || report.Changes != 0 {
		t.Errorf("names that are not UTF-8: %+v, %v", report, err)
	}
	requireEqual(t, "all but those names", last, first)
}

// Environment variables that make this program a copy to be killed.
const (
	copyFromVar = "WEBHOOKCFG_TEST_COPY_FROM"
	copyToVar   = "WEBHOOKCFG_TEST_COPY_TO"
)

// TestKillCopy kills processes that copy from one file to another. Each continues where the one
// before it was, and the last one completes the copy.
func TestKillCopy(t *testing.T) {
	if from, to := os.Getenv(copyFromVar), os.Getenv(copyToVar); to != "" {
		beKilledCopying(from, to)
	}
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	src := openCopy(t, from)
	hooktest.Apply(t, src, copied(300)...)
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	const total, kills = 900, 5
	var counts []int
	for kill := range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestKillCopy$")
		child.Env = append(os.Environ(), copyFromVar+"="+from, copyToVar+"="+to)
		var complaints bytes.Buffer
		child.Stderr = &complaints
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1)
		for range 20 + 30*kill { // the child writes a byte per change
			if _, err := out.Read(buf); err != nil {
				break
			}
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		if complaints.Len() > 0 {
			t.Fatalf("the process failed: %s", &complaints)
		}
		dst := openCopy(t, to)
		count := 0
		for client, err := range admin.Clients(t.Context(), dst) {
			if err != nil {
				t.Fatal(err)
			}
			for range admin.Webhooks(t.Context(), dst, client) {
				count++
			}
		}
		counts = append(counts, count)
		if err := dst.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(counts) || counts[0] == 0 || counts[0] == total {
		t.Errorf("after the kills the copy had %d of %d webhooks", counts, total)
	}
	src, dst := openCopy(t, from), openCopy(t, to)
	report, err := admin.Copy(t.Context(), dst, src, &admin.CopyOptions{Replace: true})
	if err != nil || report.Changes != total-counts[kills-1] {
		t.Errorf("%+v, %v; %d of %d webhooks were copied before", report, err, counts[kills-1], total)
	}
	requireEqual(t, "the completed copy", dst, src)
}

// beKilledCopying copies one file to another, and writes a byte after each change.
func beKilledCopying(from, to string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	src, err := store.OpenFile(from, nil)
	if err != nil {
		fail(err)
	}
	dst, err := store.OpenFile(to, nil)
	if err != nil {
		fail(err)
	}
	if _, err := admin.Copy(context.Background(), reporting{dst, new(atomic.Int64)}, src, &admin.CopyOptions{Replace: true, Workers: 4}); err != nil {
		fail(err)
	}
	select {} // until it is killed
}

// reporting is a File that writes a byte to the standard output after each change. It makes no
// more than 250, so that the process is killed before it is done.
type reporting struct {
	*store.File
	made *atomic.Int64
}

func (r reporting) Apply(ctx context.Context, c webhookcfg.Change) error {
	if r.made.Add(1) > 250 {
		select {}
	}
	err := r.File.Apply(ctx, c)
	if err == nil {
		_, err = os.Stdout.Write([]byte{'.'})
	}
	return err
}
