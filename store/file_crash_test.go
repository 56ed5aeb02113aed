package store_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// full runs the enumerations and histories in full. Without it, a sample of them takes seconds.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

// recovery is enough time for a store to recover after the cause of a failure is gone.
const recovery = 2 * time.Second

// run runs a script on a file store and records the states that the store may have. It
// needs a bubble of package synctest.
type run struct {
	fs   *faultfs.FS
	file *store.File
	// legal are the states that the store may have: one, except after changes whose
	// outcome is unknown.
	legal []model
	// described are the legal states that text describes.
	described []model
	text      string
	// wrong are the states it had while it was open that were not legal.
	wrong []string
}

// step is a step of a script. It returns its first error.
type step func(*run) error

var errNotOpen = errors.New("the store is not open")

// newRun returns a run on a disk with outcomes that decide chooses. A sync takes a while,
// so that changes wait for the one before them, and so does a removal, so that a failed
// compaction takes up space while they continue.
func newRun(disk *faultfs.FS, decide func(faultfs.Call) faultfs.Outcome) *run {
	disk.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync || c.Op == faultfs.OpRemove {
			time.Sleep(time.Millisecond)
		}
		return decide(c)
	})
	return &run{fs: disk, legal: []model{{}}}
}

// play runs steps until the file system stops. After a failure the store recovers by
// itself, or is opened again by a later step.
func (r *run) play(script []step) {
	for _, step := range script {
		err := step(r)
		if errors.Is(err, faultfs.ErrStopped) {
			return
		}
		if err != nil || len(r.legal) > 1 {
			r.settle()
		}
	}
}

// settle lets the store recover and checks the state that it has. If the store accepts
// changes, this state lasts: a change that failed is not made later.
func (r *run) settle() {
	if r.file == nil {
		return
	}
	if r.file.Err() != nil {
		time.Sleep(recovery)
	}
	seen := observe(r.file, clients...)
	i := slices.IndexFunc(r.legal, func(m model) bool { return m.String() == seen })
	switch {
	case i < 0:
		r.wrong = append(r.wrong, fmt.Sprintf("while open, it had\n%slegal is\n%s", seen, r.legal))
	case r.file.Err() == nil:
		r.legal = r.legal[i : i+1]
	}
}

func open(r *run) (err error) {
	if r.file != nil {
		return nil
	}
	for range 2 { // like an operator, after a transient error
		if r.file, err = store.OpenFS(r.fs, "log", nil); err == nil {
			return nil
		}
		r.file = nil
	}
	return err
}

func shut(r *run) error {
	if r.file == nil {
		return errNotOpen
	}
	file := r.file
	r.file = nil
	return file.Close()
}

func compact(r *run) error {
	if r.file == nil {
		return errNotOpen
	}
	return r.file.Compact(context.Background())
}

// changes makes changes concurrently. They reach the store in this order, the first one
// alone and the others while it is synced, so that they share a batch.
func changes(all ...webhookcfg.Change) step {
	return func(r *run) error {
		if r.file == nil {
			return errNotOpen
		}
		errs := make([]error, len(all))
		var done sync.WaitGroup
		for i, c := range all {
			done.Go(func() { errs[i] = r.file.Apply(context.Background(), c) })
			if len(all) > 1 {
				synctest.Wait()
			}
		}
		done.Wait()
		r.account(all, errs)
		return cmp.Or(errs...)
	}
}

// account records changes. One that failed may have been made or not; of the last ones,
// which failed together, any number from the first on.
func (r *run) account(all []webhookcfg.Change, errs []error) {
	together := len(all)
	for together > 1 && errs[together-1] != nil {
		together--
	}
	for i, c := range all[:together] {
		r.accountOne(c, errs[i])
	}
	for _, m := range r.legal {
		for _, c := range all[together:] {
			m = m.after(c)
			r.legal = append(r.legal, m)
		}
	}
}

// accountOne records a change that is independent of others.
func (r *run) accountOne(c webhookcfg.Change, err error) {
	before := r.legal
	r.legal = nil
	for _, m := range before {
		r.legal = append(r.legal, m.after(c))
		if err != nil {
			r.legal = append(r.legal, m)
		}
	}
}

func (m model) after(c webhookcfg.Change) model {
	m = m.clone()
	m.apply(c)
	return m
}

// isLegal reports whether the store may have the state.
func (r *run) isLegal(state string) bool {
	return slices.ContainsFunc(r.legal, func(m model) bool { return m.String() == state })
}

// describe returns the legal states. A step replaces them, and a run is checked many times after
// its last step.
func (r *run) describe() string {
	if len(r.described) == 0 || len(r.described) != len(r.legal) || &r.described[0] != &r.legal[0] {
		var b strings.Builder
		for _, m := range r.legal {
			b.WriteString(m.String())
		}
		r.described, r.text = r.legal, b.String()
	}
	return r.text
}

// end ends the process that had the store open.
func (r *run) end() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// script covers all kinds of changes, single, concurrent and more than are applied at a
// time, compactions, and openings of new, closed and compacted files. Openings that find
// the store open do nothing.
func script() []step {
	return slices.Concat([]step{
		open,
		changes(hooktest.Set("acme", "e1", 1)),
		changes(hooktest.SetAll("acme", 2)),
		changes(hooktest.Unset("acme", "e1", 3), hooktest.Set("acme", "e2", 4), hooktest.Set("other", "e1", 5), hooktest.Set("other", "e2", 6), hooktest.Unset("other", "e3", 7)),
		compact,
		open,
		changes(many(20)...),
		shut, open,
		changes(hooktest.Unset("other", "e1", 12)),
	}, shortScript(), []step{
		changes(hooktest.SetAll("other", 15)),
		changes(hooktest.Unset("other", "e4", 16)),
	})
}

func shortScript() []step {
	return []step{
		open,
		changes(hooktest.UnsetAll("other", 50), hooktest.Set("acme", "e1", 51), hooktest.Unset("acme", "e2", 52)),
		compact,
		shut, open,
		changes(hooktest.Set("other", "e3", 53)),
	}
}

// many returns changes of which any first ones give another state.
func many(n int) (all []webhookcfg.Change) {
	for i := range n {
		all = append(all, hooktest.Set(clients[i%2], entities[i/2%4], 20+i))
	}
	return all
}

// findings are the results of an enumeration, which ends once it has enough.
type findings struct {
	cases  int
	wrong  []string
	enough int
	// checked are hashes of the file systems that were checked, with the legal states.
	checked map[[sha256.Size]byte]bool
}

func newFindings(enough int) *findings {
	return &findings{enough: enough, checked: map[[sha256.Size]byte]bool{}}
}

func (f *findings) add(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *findings) hasEnough() bool { return len(f.wrong) >= f.enough }

// isNew reports whether a file system was not yet checked.
func (f *findings) isNew(r *run, disk *faultfs.FS) bool {
	var b strings.Builder
	for _, disk := range []*faultfs.FS{disk, disk.Crash(faultfs.Nothing)} {
		for _, name := range slices.Sorted(slices.Values(disk.Names())) {
			fmt.Fprintf(&b, "%s:%s\n", name, disk.ReadFile(name))
		}
	}
	b.WriteString(r.describe())
	sum := sha256.Sum256([]byte(b.String()))
	isNew := !f.checked[sum]
	f.checked[sum] = true
	return isNew
}

// callsUntil returns the numbers of the file calls to interfere with, from 1 on, until the body
// of the loop no longer sets reached. Without -full, they're every nth one, beginning with first,
// and the last ones.
func callsUntil(n, first int, reached *bool) iter.Seq[int] {
	if *full {
		n, first = 1, 1
	}
	return func(yield func(int) bool) {
		for k := first; ; k += n {
			*reached = false
			if !yield(k) || !*reached && n == 1 {
				return
			}
			if !*reached {
				k, n = max(0, k-n), 1
			}
		}
	}
}

// check opens the store like a new process and compares its state, which must survive a
// crash, as must one more change.
func (f *findings) check(r *run, disk *faultfs.FS, what string) {
	for _, wrong := range r.wrong {
		f.add("%s: %s", what, wrong)
	}
	r.wrong = nil
	if !f.isNew(r, disk) {
		return
	}
	f.cases++
	file, err := store.OpenFS(disk, "log", nil)
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
	if err := file.Apply(context.Background(), hooktest.Set("acme", "e1", 99)); err != nil {
		f.add("%s: takes no change: %v", what, err)
		return
	}
	want := observe(file, clients...)
	again, err := store.OpenFS(disk.Crash(faultfs.Nothing), "log", nil)
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
func losses(disk *faultfs.FS, random *rand.Rand) map[string]faultfs.Keep {
	all := map[string]faultfs.Keep{"nothing": faultfs.Nothing}
	if pending := disk.Pending(); pending > 0 {
		all["everything"] = faultfs.Everything
		for i := range 3 {
			all[fmt.Sprint("some ", i)] = faultfs.Some(random)
			all[fmt.Sprint("a start ", i)] = faultfs.First(random.IntN(pending))
			all[fmt.Sprint("a small start ", i)] = faultfs.First(random.IntN(min(pending, 1000)))
		}
	}
	return all
}

// checkAfter checks what the next process finds after a power failure, and after this
// process ended, without one and with one.
func (f *findings) checkAfter(r *run, what string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2 {
		for name, keep := range losses(r.fs, random) {
			f.check(r, r.fs.Crash(keep), what+", power failure that keeps "+name)
		}
		r.end()
	}
	f.check(r, r.fs.Restart(), what)
}

// causes are the errors that file calls fail with.
var causes = []error{
	syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE, syscall.EINTR,
	fs.ErrNotExist, fs.ErrExist, fs.ErrClosed,
}

// fault is a number of successive calls that fail.
type fault struct {
	outcome faultfs.Outcome
	calls   int
}

func faults() (all []fault) {
	for _, cause := range causes {
		all = append(all, fault{faultfs.Fail.With(cause), 1})
	}
	for _, cause := range []error{fs.ErrPermission, fs.ErrNotExist} { // a rename may depend on them
		all = append(all, fault{faultfs.FailAfter.With(cause), 1})
	}
	const forever = 1 << 30
	for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter} {
		all = append(all, fault{outcome, 1}, fault{outcome, 8}, fault{outcome, forever})
	}
	return all
}

// enumerateFaults makes each file call of the script fail, in every way, or several from
// that one on, and checks what the next process finds.
func enumerateFaults(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	for i, fault := range faults() {
		const apart = 6
		var reached bool
		for k := range callsUntil(apart, 1+i%apart, &reached) {
			if f.hasEnough() {
				return f
			}
			r := newRun(faultfs.New(), func(c faultfs.Call) faultfs.Outcome {
				if c.N < k || c.N-k >= fault.calls {
					return also(c)
				}
				reached = true
				return fault.outcome
			})
			r.play(script())
			f.checkAfter(r, fmt.Sprintf("outcome %v of %d calls from call %d on", fault.outcome, fault.calls, k), uint64(k))
		}
	}
	return f
}

// enumerateCrashes stops the file system at each file call of the script, and again at
// each file call of the recovery, and checks what the next process finds.
func enumerateCrashes(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	var reached bool
	for k := range callsUntil(4, 1, &reached) {
		if f.hasEnough() {
			return f
		}
		r := newRun(faultfs.New(), stopAt(k, also, &reached))
		r.play(script())
		r.end()
		if pending := r.fs.Pending(); pending < 100 { // less than a record: a copy of the header
			for size := range pending {
				f.check(r, r.fs.Crash(faultfs.First(size)), fmt.Sprintf("power failure at call %d that keeps %d bytes", k, size))
			}
		}
		random := rand.New(rand.NewPCG(uint64(k), 1))
		for name, keep := range losses(r.fs, random) {
			what := fmt.Sprintf("power failure at call %d that keeps %s", k, name)
			image := r.fs.Crash(keep)
			before := f.cases
			if f.check(r, image.Crash(faultfs.Everything), what); f.cases > before {
				f.recoverAgain(r, image, also, what)
			}
		}
	}
	return f
}

// recoverAgain stops the file system at each file call of an opening.
func (f *findings) recoverAgain(r *run, image *faultfs.FS, also func(faultfs.Call) faultfs.Outcome, what string) {
	var reached bool
	for k := range callsUntil(2, 1, &reached) {
		if f.hasEnough() {
			return
		}
		disk := image.Crash(faultfs.Everything)
		disk.Decide(stopAt(k, also, &reached))
		if file, err := store.OpenFS(disk, "log", nil); err == nil {
			_ = file.Close()
		}
		random := rand.New(rand.NewPCG(uint64(k), 2))
		for name, keep := range map[string]faultfs.Keep{"nothing": faultfs.Nothing, "some": faultfs.Some(random)} {
			f.check(r, disk.Crash(keep), fmt.Sprintf("%s, another at call %d after it that keeps %s", what, k, name))
		}
	}
}

// enumerateRepairs makes each file call of a short script fail, stops the file system at
// each of the next calls, when the store repairs what the failure left, and checks what
// the next process finds.
func enumerateRepairs(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	const calls = 12 // of a repair and the change after it
	f := newFindings(enough)
	for i, outcome := range []faultfs.Outcome{faultfs.FailHalfway, faultfs.FailAfter} {
		var reached bool
		for k := range callsUntil(3, 1+i, &reached) {
			if f.hasEnough() {
				return f
			}
			var isRepaired bool
			for n := k + 1; n <= k+calls && !isRepaired; n++ {
				reached = false
				r := newRun(faultfs.New(), func(c faultfs.Call) faultfs.Outcome {
					if c.N == k {
						reached = true
						isRepaired = c.Op == faultfs.OpSize || c.Op == faultfs.OpClose
						return outcome
					}
					if c.N == n {
						return faultfs.Stop
					}
					return also(c)
				})
				r.play(shortScript())
				r.end()
				random := rand.New(rand.NewPCG(uint64(k), uint64(n)))
				for name, keep := range losses(r.fs, random) {
					f.check(r, r.fs.Crash(keep), fmt.Sprintf("outcome %v of call %d, power failure at call %d that keeps %s", outcome, k, n, name))
				}
			}
		}
	}
	return f
}

// stopAt stops the file system at call k.
func stopAt(k int, also func(faultfs.Call) faultfs.Outcome, reached *bool) func(faultfs.Call) faultfs.Outcome {
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

// enumeration is a way to look for what is wrong with a store.
type enumeration func(also func(faultfs.Call) faultfs.Outcome, enough int) *findings

// in runs an enumeration in a bubble.
func (e enumeration) in(t *testing.T, also func(faultfs.Call) faultfs.Outcome, enough int) (f *findings) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { f = e(also, enough) })
	return f
}

func (e enumeration) report(t *testing.T, what string) {
	t.Helper()
	f := e.in(t, honestly, 5)
	t.Logf("%d cases of %s", f.cases, what)
	for _, wrong := range f.wrong {
		t.Error(wrong)
	}
}

func TestEveryCallFailing(t *testing.T) {
	t.Parallel()
	enumeration(enumerateFaults).report(t, "failing file calls")
}

func TestPowerFailureAtEveryCall(t *testing.T) {
	t.Parallel()
	enumeration(enumerateCrashes).report(t, "a power failure, and a second one during recovery")
}

func TestPowerFailureDuringRepairs(t *testing.T) {
	t.Parallel()
	enumeration(enumerateRepairs).report(t, "a power failure after a failing file call")
}

// TestEnumerationsCanFail leaves out calls that the store relies on.
func TestEnumerationsCanFail(t *testing.T) {
	for _, test := range []struct {
		enumerate enumeration
		op        faultfs.Op
	}{
		{enumerateCrashes, faultfs.OpSync},
		{enumerateCrashes, faultfs.OpSyncDir},
		{enumerateRepairs, faultfs.OpSync},
		{enumerateFullDisks, faultfs.OpTruncate},
		{enumerateTakings, faultfs.OpSameFile},
		{enumerateOpeners, faultfs.OpLock},
	} {
		if f := test.enumerate.in(t, without(test.op), 1); len(f.wrong) == 0 {
			t.Errorf("without %s, none of %d cases went wrong", test.op, f.cases)
		}
	}
}
