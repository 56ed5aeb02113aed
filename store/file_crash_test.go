package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// run runs a script on a file store and records the states that the store may have.
type run struct {
	fs   *faultfs.FS
	file *store.File
	// legal are the states that the store may have: one, except after changes whose
	// outcome is unknown.
	legal []model
}

// step is a step of a script. It returns its first error.
type step func(*run) error

func newRun(fs *faultfs.FS) *run { return &run{fs: fs, legal: []model{{}}} }

// play runs steps until one leaves the store unusable.
func (r *run) play(script []step) {
	for _, step := range script {
		if err := step(r); err != nil && r.file == nil || errors.Is(err, store.ErrReadOnly) || errors.Is(err, faultfs.ErrStopped) {
			return
		}
	}
}

func open(r *run) (err error) {
	for range 2 { // like an operator, after a transient error
		if r.file, err = store.OpenFS(r.fs, "log", nil); err == nil {
			return nil
		}
		r.file = nil
	}
	return err
}

func shut(r *run) error {
	file := r.file
	r.file = nil
	return file.Close()
}

func compact(r *run) error { return r.file.Compact(context.Background()) }

// changes makes changes concurrently, each of another entity.
func changes(all ...webhookcfg.Change) step {
	return func(r *run) error {
		errs := make([]error, len(all))
		var done sync.WaitGroup
		for i, c := range all {
			done.Go(func() { errs[i] = r.file.Apply(context.Background(), c) })
		}
		done.Wait()
		for i, c := range all {
			r.account(c, errs[i])
		}
		return errors.Join(errs...)
	}
}

// account records a change: one that failed may have been made or not.
func (r *run) account(c webhookcfg.Change, err error) {
	before := r.legal
	r.legal = nil
	for _, m := range before {
		after := m.clone()
		after.apply(c)
		r.legal = append(r.legal, after)
		if err != nil {
			r.legal = append(r.legal, m)
		}
	}
}

// isLegal reports whether the store may have the state.
func (r *run) isLegal(state string) bool {
	for _, m := range r.legal {
		if m.String() == state {
			return true
		}
	}
	return false
}

// end ends the process that had the store open.
func (r *run) end() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// script covers all kinds of changes, single and concurrent, compactions, and openings of
// new, closed and compacted files.
func script() []step {
	return []step{
		open,
		changes(set("acme", "e1", 1)),
		changes(setAll("acme", 2)),
		changes(unset("acme", "e1", 3), set("acme", "e2", 4), set("other", "e1", 5), set("other", "e2", 6), unset("other", "e3", 7)),
		compact,
		changes(set("acme", "e3", 8), set("acme", "e4", 9), unset("acme", "e2", 10), set("other", "e4", 11)),
		shut, open,
		changes(unset("other", "e1", 12)),
		changes(unsetAll("other", 13)),
		compact,
		shut, open,
		changes(set("other", "e3", 14)),
		changes(setAll("other", 15)),
		changes(unset("other", "e4", 16)),
		shut,
	}
}

// findings are the results of an enumeration, which ends once it has enough.
type findings struct {
	cases  int
	wrong  []string
	enough int
}

func (f *findings) add(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *findings) hasEnough() bool { return len(f.wrong) >= f.enough }

// check opens the store like a new process and compares its state, which must survive a
// crash, as must one more change.
func (f *findings) check(r *run, fs *faultfs.FS, what string) {
	f.cases++
	file, err := store.OpenFS(fs, "log", nil)
	if err != nil {
		f.add("%s: cannot be opened: %v", what, err)
		return
	}
	defer file.Close()
	seen := observe(file, clients...)
	if !r.isLegal(seen) {
		f.add("%s: opened as\n%slegal is\n%s", what, seen, r.legal)
		return
	}
	if err := file.Apply(context.Background(), set("acme", "e1", 99)); err != nil {
		f.add("%s: takes no change: %v", what, err)
		return
	}
	want := observe(file, clients...)
	again, err := store.OpenFS(fs.Crash(faultfs.Nothing), "log", nil)
	if err != nil {
		f.add("%s: cannot be opened after a second crash: %v", what, err)
		return
	}
	defer again.Close()
	if got := observe(again, clients...); got != want {
		f.add("%s: was\n%sand after a second crash it is\n%s", what, want, got)
	}
}

// losses are ways in which a power failure treats pending writes.
func losses(fs *faultfs.FS, random *rand.Rand) map[string]faultfs.Keep {
	all := map[string]faultfs.Keep{"nothing": faultfs.Nothing, "everything": faultfs.Everything}
	if pending := fs.Pending(); pending > 0 {
		all["some"] = faultfs.Some(random)
		all["a start"] = faultfs.First(random.IntN(pending))
		all["a small start"] = faultfs.First(random.IntN(min(pending, 1000)))
	}
	return all
}

// enumerateFaults makes each file call of the script fail, in every way, once or from then
// on, and checks what the next process finds, with and without a power failure.
func enumerateFaults() *findings {
	f := &findings{enough: 5}
	for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter} {
		for _, lasts := range []bool{false, true} {
			for k, reached := 1, true; reached && !f.hasEnough(); k++ {
				r := newRun(faultfs.New())
				reached = false
				r.fs.Decide(func(c faultfs.Call) faultfs.Outcome {
					if c.N == k || lasts && c.N > k {
						reached = true
						return outcome
					}
					return faultfs.Succeed
				})
				r.play(script())
				r.end()
				f.checkAfter(r, fmt.Sprintf("outcome %d of call %d, lasting %t", outcome, k, lasts), uint64(k))
			}
		}
	}
	return f
}

// checkAfter checks what the next process finds, with and without a power failure.
func (f *findings) checkAfter(r *run, what string, seed uint64) {
	for name, keep := range losses(r.fs, rand.New(rand.NewPCG(seed, 0))) {
		f.check(r, r.fs.Crash(keep), what+", power failure that keeps "+name)
	}
	f.check(r, r.fs.Restart(), what)
}

// enumerateCrashes stops the file system at each file call of the script, and again at
// each file call of the recovery, and checks what the next process finds.
func enumerateCrashes(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := &findings{enough: enough}
	for k, reached := 1, true; reached && !f.hasEnough(); k++ {
		r := newRun(faultfs.New())
		r.fs.Decide(stopAt(k, also, &reached))
		r.play(script())
		r.end()
		random := rand.New(rand.NewPCG(uint64(k), 1))
		for name, keep := range losses(r.fs, random) {
			what := fmt.Sprintf("power failure at call %d that keeps %s", k, name)
			image := r.fs.Crash(keep)
			f.check(r, image.Crash(faultfs.Everything), what)
			f.recoverAgain(r, image, also, what)
		}
	}
	return f
}

// recoverAgain stops the file system at each file call of an opening.
func (f *findings) recoverAgain(r *run, image *faultfs.FS, also func(faultfs.Call) faultfs.Outcome, what string) {
	for k, reached := 1, true; reached && !f.hasEnough(); k++ {
		fs := image.Crash(faultfs.Everything)
		fs.Decide(stopAt(k, also, &reached))
		if file, err := store.OpenFS(fs, "log", nil); err == nil {
			_ = file.Close()
		}
		random := rand.New(rand.NewPCG(uint64(k), 2))
		for name, keep := range map[string]faultfs.Keep{"nothing": faultfs.Nothing, "some": faultfs.Some(random)} {
			f.check(r, fs.Crash(keep), fmt.Sprintf("%s, another at call %d after it that keeps %s", what, k, name))
		}
	}
}

// stopAt stops the file system at call k.
func stopAt(k int, also func(faultfs.Call) faultfs.Outcome, reached *bool) func(faultfs.Call) faultfs.Outcome {
	*reached = false
	return func(c faultfs.Call) faultfs.Outcome {
		if c.N == k {
			*reached = true
			return faultfs.Stop
		}
		return also(c)
	}
}

func honestly(faultfs.Call) faultfs.Outcome { return faultfs.Succeed }

// without leaves out one kind of call, as if the store did not make it.
func without(op faultfs.Op) func(faultfs.Call) faultfs.Outcome {
	return func(c faultfs.Call) faultfs.Outcome {
		if c.Op == op {
			return faultfs.Pretend
		}
		return faultfs.Succeed
	}
}

func (f *findings) report(t *testing.T, what string) {
	t.Helper()
	t.Logf("%d cases of %s", f.cases, what)
	for _, wrong := range f.wrong {
		t.Error(wrong)
	}
}

func TestEveryCallFailing(t *testing.T) {
	t.Parallel()
	enumerateFaults().report(t, "a failing file call")
}

func TestPowerFailureAtEveryCall(t *testing.T) {
	t.Parallel()
	enumerateCrashes(honestly, 5).report(t, "a power failure, and a second one during recovery")
}

// TestEnumerationsCanFail leaves out calls that the store relies on.
func TestEnumerationsCanFail(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpSync, faultfs.OpSyncDir} {
		if f := enumerateCrashes(without(op), 1); len(f.wrong) == 0 {
			t.Errorf("without %s, none of %d cases went wrong", op, f.cases)
		}
	}
}
