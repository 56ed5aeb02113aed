package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestEngines runs the tests that share the servers.
func TestEngines(t *testing.T) {
	names, fresh := engines(t)
	for n, from := range names { // each engine is copied from once, and to once
		t.Run("copy from "+from, func(t *testing.T) {
			src, model := fresh(t, from), modelled(t, content()...)
			src.use(t, func(st webhookcfg.Store) {
				report := mustCopy(t, "to "+from, st, model)
				if want := len(dump(t, model)); report.Changes != want {
					t.Errorf("%d changes, want %d", report.Changes, want)
				}
				requireEqual(t, "to "+from, st, model)
			})
			to := names[(n+1)%len(names)]
			t.Run("to "+to, func(t *testing.T) { killCopies(t, fresh(t, to), src, model) })
		})
	}
	t.Run("around", func(t *testing.T) { copyAround(t, fresh) })
	for _, pair := range [][2]string{{"postgres", "sqlite"}, {"sqlite", "etcd"}, {"etcd", "postgres"}, {"file", "mariadb"}, {"mariadb", "file"}} {
		t.Run("migrate from "+pair[0]+" to "+pair[1], func(t *testing.T) { migrate(t, fresh(t, pair[1]), fresh(t, pair[0])) })
	}
	for _, name := range names {
		t.Run("erase from "+name, func(t *testing.T) { erase(t, fresh(t, name)) })
		t.Run("seal in "+name, func(t *testing.T) { seal(t, func() place { return fresh(t, name) }) })
	}
	for _, name := range names[1:] { // without the file
		for _, c := range storetest.Cases() {
			t.Run("sealed "+name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				sealedConforms(t, fresh(t, name), c)
			})
		}
	}
}

// Environment variables that turn this program into one that copies, so that we can kill it.
const (
	fromVar = "WEBHOOKCFG_TEST_COPY_FROM"
	toVar   = "WEBHOOKCFG_TEST_COPY_TO"
)

// maxMade is how many changes a process makes at most, so that we kill it before it's done.
const maxMade = 300

// killCopies kills processes that copy from one place to another. Then it completes the copy.
func killCopies(t *testing.T, to, from place, model webhookcfg.Store) {
	const kills = 2
	for kill := range kills {
		if made := killOne(t, to, from, rand.IntN(200)); kill == 0 && made == 0 {
			t.Error("the process made no change")
		}
	}
	from.use(t, func(src webhookcfg.Store) {
		to.use(t, func(dst webhookcfg.Store) {
			before := len(dump(t, dst))
			if before == 0 {
				t.Error("the processes copied nothing")
			}
			report := mustCopy(t, "completed", dst, src)
			if want := len(dump(t, model)) - before; report.Changes != want {
				t.Errorf("%d changes completed the copy, want %d", report.Changes, want)
			}
			requireEqual(t, "completed", dst, model)
			if report := mustCopy(t, "repeated", dst, src); report.Changes != 0 {
				t.Errorf("repeated with %d changes", report.Changes)
			}
		})
	})
}

// killOne starts a process that copies, and kills it after more than this many changes.
func killOne(t *testing.T, to, from place, changes int) (made int) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fromVar+"="+from.String(), toVar+"="+to.String())
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
	for made <= changes {
		if _, err := out.Read(buf); err != nil {
			break
		}
		made++
	}
	_ = child.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = child.Wait()
	if complaints.Len() > 0 {
		t.Fatalf("the process failed: %s", &complaints)
	}
	return made
}

// copyUntilKilled copies, and writes a byte after each change.
func copyUntilKilled(from, to string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	src, _, err := parsePlace(from).open(context.Background())
	if err != nil {
		fail(err)
	}
	dst, _, err := parsePlace(to).open(context.Background())
	if err != nil {
		fail(err)
	}
	if _, err := admin.Copy(context.Background(), slowed{dst.(operated), new(atomic.Int64)}, src, &admin.CopyOptions{Replace: true}); err != nil {
		fail(err)
	}
	select {} // until we kill it
}

// operated is a store that package admin can copy to.
type operated interface {
	webhookcfg.Store
	webhookcfg.Lister
	admin.ClientLister
}

// slowed writes a byte to standard output after each change. It makes at most maxMade
// changes.
type slowed struct {
	operated
	made *atomic.Int64
}

func (s slowed) Apply(ctx context.Context, c webhookcfg.Change) error {
	if s.made.Add(1) > maxMade {
		select {}
	}
	err := s.operated.Apply(ctx, c)
	if err == nil {
		_, err = os.Stdout.Write([]byte{'.'})
	}
	return err
}

// copyAround copies a file through all engines to another file. Their backups must be equal
// byte for byte.
func copyAround(t *testing.T, fresh func(t *testing.T, name string) place) {
	first := fresh(t, "file")
	first.use(t, func(st webhookcfg.Store) { hooktest.Apply(t, st, content()...) })
	last := first
	for _, name := range []string{"postgres", "sqlite", "etcd", "mariadb", "file"} {
		next := fresh(t, name)
		last.use(t, func(src webhookcfg.Store) {
			next.use(t, func(dst webhookcfg.Store) {
				mustCopy(t, "to "+name, dst, src)
				requireEqual(t, "to "+name, dst, src)
			})
		})
		last = next
	}
	var backups [][]byte
	for _, p := range []place{first, last} {
		p.use(t, func(st webhookcfg.Store) {
			path := filepath.Join(t.TempDir(), "backup")
			if err := st.(*store.File).Backup(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			backup, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			backups = append(backups, backup)
		})
	}
	if len(backups[0]) == 0 || !bytes.Equal(backups[0], backups[1]) {
		t.Errorf("the backups of %d and %d bytes differ", len(backups[0]), len(backups[1]))
	}
}

// migrate moves from one place to another while writers are active, as the example of package
// admin does. If a store has no feed, each pass copies everything.
func migrate(t *testing.T, to, from place) {
	from.use(t, func(src webhookcfg.Store) {
		hooktest.Apply(t, src, content()[:40]...)
		changes := func(since string) (cache.Changes, error) {
			changes, err := src.(cache.Feed).Changes(patience(t), since)
			if errors.Is(err, errors.ErrUnsupported) {
				return cache.Changes{Reset: true}, nil
			}
			return changes, err
		}
		seen, err := changes("")
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var writers sync.WaitGroup
		var written atomic.Int64
		for w := range 4 {
			writers.Go(func() { written.Add(write(t, src, w, stop)) })
		}
		halt := sync.OnceFunc(func() {
			close(stop)
			writers.Wait()
		})
		defer halt()
		to.use(t, func(dst webhookcfg.Store) {
			mustCopy(t, "first", dst, src)
			pass := func() admin.Report {
				if seen, err = changes(seen.Next); err != nil {
					t.Fatal(err)
				}
				options := &admin.CopyOptions{Replace: true, Clients: append([]string{}, seen.Clients...)}
				if seen.Reset {
					options.Clients = nil
				}
				report, err := admin.Copy(t.Context(), dst, src, options)
				if err != nil || report.Different > 0 {
					t.Fatalf("%+v, %v", report, err)
				}
				return report
			}
			for range 3 {
				pass()
			}
			halt()
			last := pass()
			requireEqual(t, "migrated", dst, src)
			t.Logf("%d changes by writers, %d copied after them", written.Load(), last.Changes)
			if written.Load() == 0 {
				t.Error("the writers didn't write")
			}
		})
	})
}

// write makes changes of every kind until stop is closed, and returns how many it made.
func write(t *testing.T, st webhookcfg.Store, writer int, stop <-chan struct{}) (made int64) {
	random := rand.New(rand.NewPCG(uint64(writer), 0))
	for n := 0; ; n++ {
		select {
		case <-stop:
			return made
		default:
		}
		client, entity := fmt.Sprint("client ", random.IntN(20)), fmt.Sprint("e", random.IntN(5))
		change := hooktest.Set(client, entity, n)
		switch random.IntN(8) {
		case 0:
			change = hooktest.SetAll(client, n)
		case 1:
			change = hooktest.UnsetAll(client, n)
		case 2, 3:
			change = hooktest.Unset(client, entity, n)
		}
		if err := st.Apply(t.Context(), change); err != nil {
			t.Error(err)
			return made
		}
		made++
	}
}
