package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// diskSector is the unit in which files take space on a disk of package faultfs.
const diskSector = 64

// sized returns a change whose record is longer for larger n, up to a few sectors, and
// then short again.
func sized(n int) webhookcfg.Change {
	long := strings.Repeat("x", n*37%400)
	return hooktest.At(n, webhookcfg.SetChange(clients[n%2], webhookcfg.Entity(entities[n/2%4]), egress.NewURL("https://hooks.example.com/"+long)))
}

// maxRecord is a bound of the length of their records.
const maxRecord = 600

// enumerateFullDisks fills disks of every size while a store is changed, with compactions and
// without. Without -full, it's every fifth size. Then a disk grows again. A change may fail only
// if it doesn't fit and no compaction takes the space. If it fails, the state and the file stay
// as they were.
func enumerateFullDisks(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
	f := newFindings(enough)
	step := int64(diskSector)
	if !*full {
		step *= 5
	}
	for capacity := int64(diskSector); capacity < 10<<10 && !f.hasEnough(); capacity += step {
		for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
			what := fmt.Sprintf("%d bytes, %v", capacity, full)
			r := newRun(faultfs.New(), also)
			r.fs.Limit(capacity, full)
			f.fill(r, what, full, capacity)
			for name, keep := range map[string]faultfs.Keep{"nothing": faultfs.Nothing, "everything": faultfs.Everything} {
				f.check(r, r.fs.Crash(keep), what+", power failure that keeps "+name)
			}
			r.fs.Limit(0, nil)
			f.refill(r, what)
			r.end()
			f.check(r, r.fs.Restart(), what+", which grew")
		}
	}
	return f
}

// fill makes changes until the disk has been full for a while. If the error is ENOSPC,
// they coincide with various moments of compactions.
func (f *findings) fill(r *run, what string, full error, capacity int64) {
	if err := open(r); err != nil {
		if !errors.Is(err, full) || errors.Is(err, store.ErrDamaged) {
			f.add("%s: a new store: %v", what, err)
		}
		return
	}
	for n, failed := 0, 0; n < 60 && failed < 10; n++ {
		compacted := make(chan error, 1)
		if full == syscall.ENOSPC {
			go func() { compacted <- compact(r) }()
			moment := (int64(n) + capacity/diskSector) % 5
			time.Sleep(time.Duration(moment) * time.Millisecond / 2)
		} else {
			compacted <- nil
		}
		err := changes(sized(n))(r)
		if err != nil {
			failed++
			if free := capacity - r.fs.Used(); free > maxRecord || !errors.Is(err, store.ErrReadOnly) || !errors.Is(err, full) {
				f.add("%s: change %d failed with %d bytes free: %v", what, n, free, err)
			}
			r.legal = r.legal[1:] // it was not made
			if content := r.fs.ReadFile("log"); content[len(content)-1] != '\n' {
				f.add("%s: change %d left %q behind", what, n, content[bytes.LastIndexByte(content, '\n')+1:])
			}
		}
		if err := <-compacted; errors.Is(err, store.ErrReadOnly) {
			f.add("%s: compaction %d: %v", what, n, err)
		}
		if seen := observe(r.file, clients...); !r.isLegal(seen) {
			f.add("%s: after change %d it has\n%slegal is\n%s", what, n, seen, r.legal)
			return
		}
		if n%4 == 3 { // a repair may come before the next change
			time.Sleep(recovery)
		}
	}
}

// refill makes changes after the disk grew.
func (f *findings) refill(r *run, what string) {
	time.Sleep(recovery)
	if err := open(r); err != nil {
		f.add("%s: a store on a disk that grew: %v", what, err)
		return
	}
	if err := r.file.Err(); err != nil {
		f.add("%s: a while after the disk grew: %v", what, err)
	}
	for n := range 3 {
		if err := errors.Join(changes(sized(100+n))(r), compact(r)); err != nil {
			f.add("%s: change %d after the disk grew: %v", what, n, err)
		}
	}
}

func TestEverySizeOfDisk(t *testing.T) {
	t.Parallel()
	enumeration(enumerateFullDisks).report(t, "a full disk")
}

// TestFullDiskAtOnce fills a disk with one batch of many changes: those that fit are made.
func TestFullDiskAtOnce(t *testing.T) {
	enumeration(func(also func(faultfs.Call) faultfs.Outcome, enough int) *findings {
		f := newFindings(enough)
		for capacity := int64(1 << 10); capacity < 8<<10; capacity += diskSector {
			what := fmt.Sprint(capacity, " bytes")
			r := newRun(faultfs.New(), also)
			r.fs.Limit(capacity, syscall.ENOSPC)
			if err := open(r); err != nil {
				f.add("%s: %v", what, err)
				continue
			}
			err := changes(many(24)...)(r)
			if free := capacity - r.fs.Used(); err != nil && (free > maxRecord || !errors.Is(err, syscall.ENOSPC)) {
				f.add("%s: with %d bytes free: %v", what, free, err)
			}
			r.fs.Limit(0, nil)
			r.settle()
			if err := r.file.Apply(context.Background(), hooktest.Set("acme", "e1", 98)); err != nil {
				f.add("%s: after the disk grew: %v", what, err)
			}
			r.legal = []model{r.legal[0].after(hooktest.Set("acme", "e1", 98))}
			f.checkAfter(r, what, uint64(capacity))
		}
		return f
	}).report(t, "a batch that does not fit")
}
