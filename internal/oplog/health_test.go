package oplog_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// TestHealth: Healthy notices each cause without a change, except for a failure of writes. It
// notices the end of each without one.
func TestHealth(t *testing.T) {
	const text = "the disk has "
	failWrites := func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpWrite {
			return faultfs.Fail.With(syscall.EROFS)
		}
		return faultfs.Succeed
	}
	for name, test := range map[string]struct {
		begin, end func(t *testing.T, fs *faultfs.FS, l *oplog.Log)
		readOnly   bool
		text       string
	}{
		"room for a compaction is missing": {
			begin: func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Limit(fs.Used()+1<<20+100, syscall.ENOSPC) },
			end:   func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Limit(fs.Used()+1<<20+4<<10, syscall.ENOSPC) },
			text:  text,
		},
		"full": {
			begin: func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Limit(fs.Used(), syscall.ENOSPC) },
			end:   func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Limit(0, nil) },
			text:  text,
		},
		"name lost": {
			begin: func(t *testing.T, fs *faultfs.FS, _ *oplog.Log) {
				if err := fs.Rename("log", "moved"); err != nil {
					t.Error(err)
				}
			},
			end: func(t *testing.T, fs *faultfs.FS, _ *oplog.Log) {
				if err := fs.Rename("moved", "log"); err != nil {
					t.Error(err)
				}
			},
			readOnly: true, text: "move it back",
		},
		"emptied while idle": {
			begin:    func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Overwrite("log", nil) },
			end:      func(*testing.T, *faultfs.FS, *oplog.Log) {}, // the repair is enough
			readOnly: true, text: "cut or overwrote",
		},
		"overwritten while idle": {
			begin: func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) {
				content := fs.ReadFile("log")
				copy(content, "another program")
				fs.Overwrite("log", content)
			},
			end:      func(*testing.T, *faultfs.FS, *oplog.Log) {},
			readOnly: true, text: "cut or overwrote",
		},
		"writes fail": {
			begin: func(t *testing.T, fs *faultfs.FS, l *oplog.Log) {
				fs.Decide(failWrites)
				if err := l.Append(t.Context(), unsetAll("acme")); err == nil {
					t.Error("a change was made")
				}
			},
			end:      func(_ *testing.T, fs *faultfs.FS, _ *oplog.Log) { fs.Decide(nil) },
			readOnly: true, text: syscall.EROFS.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := faultfs.New()
				l := openLog(t, fs, newModel())
				appendAll(t, l, 3)
				check := func(when string) {
					t.Helper()
					if err := l.Healthy(t.Context()); err != nil {
						t.Errorf("%s: %v", when, err)
					}
				}
				check("before")
				test.begin(t, fs, l)
				err := l.Healthy(t.Context())
				if err == nil || errors.Is(err, oplog.ErrReadOnly) != test.readOnly || !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %v", err)
				}
				test.end(t, fs, l)
				time.Sleep(2 * time.Second) // the longest time until a repair
				check("after")
			})
		})
	}
}

// TestHealthWhileWriting: Healthy waits for a batch that's being written, until the caller's
// context ends.
func TestHealthWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		slowly(fs, 10*time.Second)
		failed := appendWithin(t, l, time.Second, unsetAll("acme"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := l.Healthy(ctx); !errors.Is(err, oplog.ErrReadOnly) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while a sync hangs: %v", err)
		}
		if err := l.Healthy(t.Context()); err != nil {
			t.Errorf("waiting for its end: %v", err)
		}
		<-failed
	})
}

func TestHealthAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, faultfs.New(), newModel())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Healthy(t.Context()); !errors.Is(err, oplog.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// freeless is a file system that doesn't tell its free room.
type freeless struct{ oplog.FS }

func (freeless) Free() (int64, error) { return 0, errors.ErrUnsupported }

func TestHealthWithoutFreeRoom(t *testing.T) {
	if err := openLog(t, freeless{faultfs.New()}, newModel()).Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}
