package oplog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// partly returns all results of an interrupted write over old. It can be interrupted between
// any two bytes, and either part can be missing or zero.
func partly(old, new []byte) (results [][]byte) {
	zeros := make([]byte, len(old))
	for i := 0; i <= len(old); i += sampled(5) {
		for _, parts := range [][2][]byte{{new, old}, {old, new}, {new, zeros}, {zeros, new}, {old, zeros}, {zeros, old}} {
			results = append(results, slices.Concat(parts[0][:i], parts[1][i:]))
		}
	}
	return results
}

// TestHeaderRewrittenPartly interrupts the write of a copy of the header everywhere, for
// headers of every past. The other copy must still cover everything that it did.
func TestHeaderRewrittenPartly(t *testing.T) {
	change := at(9, unset("acme", "e9"))
	for name, m := range images(t) {
		if strings.Contains(name, "preallocated") {
			continue // nothing can be appended to these images
		}
		before, covered := bytes.Clone(m.batch(change).content), m.covered
		from := m.spare * int(oplog.HeaderCopyLen)
		to := from + int(oplog.HeaderCopyLen)
		sealed := m.seal().content
		for i, torn := range partly(before[from:to], sealed[from:to]) {
			content := slices.Concat(before[:from], torn, before[to:])
			got := open(t, content, oplog.Options{})
			if got.err != nil || got.state != m.state() {
				t.Errorf("%s, case %d: %v, opened with\n%s", name, i, got.err, got.state)
			}
			if again := open(t, got.content[:len(got.content)-1], oplog.Options{}); again.err == nil {
				t.Errorf("%s, case %d: not sealed by the opening", name, i)
			}
			if cut := open(t, content[:covered-1], oplog.Options{}); cut.err == nil {
				t.Errorf("%s, case %d: the other copy no longer covers what it did", name, i)
			}
		}
	}
}

// TestFailedSealIsRepeated fails a seal and then interrupts the next one. The two copies of
// the header must not both be torn.
func TestFailedSealIsRepeated(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpTruncate, faultfs.OpSync} {
		for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter} {
			for seals := range 3 { // before the failing one
				fs, m := faultfs.New(), newImage(t)
				fs.WriteFile("log", m.content)
				add, seal := resume(t, fs)
				for n := range seals + 1 {
					start := len(m.content)
					m.batch(at(n, set("acme", fmt.Sprint("e", n), "https://a.example/")))
					if err := add(m.content[start:]); err != nil {
						t.Fatal(err)
					}
					if n == seals {
						failOnce(fs, op, outcome)
					}
					if err := seal(); (err != nil) != (n == seals) {
						t.Fatalf("%s: seal %d: %v", op, n, err)
					}
				}
				fs.Decide(pretend(faultfs.OpSync))
				if err := seal(); err != nil {
					t.Fatal(err)
				}
				for lost := 0; lost < int(oplog.HeaderCopyLen); lost += sampled(5) {
					got := newModel()
					after := fs.Crash(func(p faultfs.Piece) int { return max(0, p.Size-lost) })
					l, err := oplog.Open(after, "log", got, oplog.Options{})
					if err != nil || got.String() != m.state() {
						t.Errorf("%s with outcome %v, %d bytes of each piece lost: %v, opened with\n%s", op, outcome, lost, err, got)
						continue
					}
					_ = l.Close()
				}
			}
		}
	}
}

// TestTornSealKeepsTheOneBefore tears the header while a log is sealed, also if the log was
// opened since the seal before. What that one covered can't be cut unnoticed.
func TestTornSealKeepsTheOneBefore(t *testing.T) {
	for _, again := range []bool{false, true} {
		fs, m := faultfs.New(), newImage(t)
		fs.WriteFile("log", m.content)
		add, seal := resume(t, fs)
		for n := range 4 {
			before := fs.ReadFile("log")
			m.batch(at(n, set("acme", fmt.Sprint("e", n), "https://a.example/")))
			if err := errors.Join(add(m.content[len(before):]), seal()); err != nil {
				t.Fatal(err)
			}
			torn := fs.ReadFile("log")
			for at := int64(0); at < oplog.HeaderLen; at += oplog.HeaderCopyLen {
				if line := torn[at:][:oplog.HeaderCopyLen]; !bytes.Equal(line, before[at:][:oplog.HeaderCopyLen]) {
					clear(line)
				}
			}
			if got := open(t, torn[:len(before)-1], oplog.Options{}); !errors.Is(got.err, oplog.ErrDamaged) {
				t.Errorf("opened again %v, seal %d: %v", again, n, got.err)
			}
			if again {
				fs = fs.Restart()
				add, seal = resume(t, fs)
			}
		}
	}
}

// pretend leaves out one kind of call.
func pretend(op faultfs.Op) func(faultfs.Call) faultfs.Outcome {
	return func(c faultfs.Call) faultfs.Outcome {
		if c.Op == op {
			return faultfs.Pretend
		}
		return faultfs.Succeed
	}
}

// resume opens the file of a log in order to append to it and seal it.
func resume(t *testing.T, fs oplog.FS) (add func(lines []byte) error, seal func() error) {
	t.Helper()
	file, err := fs.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	add, seal, err = oplog.Resume(file, "log", newModel())
	if err != nil {
		t.Fatal(err)
	}
	return add, seal
}

// TestSealedFileIsOpenedWithoutAWrite opens and closes a closed file.
func TestSealedFileIsOpenedWithoutAWrite(t *testing.T) {
	fs := faultfs.New()
	l := openLog(t, fs, newModel())
	appendAll(t, l, 3)
	syncs := fs.Count(faultfs.OpSync)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := fs.Count(faultfs.OpSync) - syncs; n != 1 {
		t.Errorf("closing took %d syncs", n)
	}
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Name == "log" && slices.Contains([]faultfs.Op{faultfs.OpWrite, faultfs.OpTruncate, faultfs.OpSync}, c.Op) {
			t.Errorf("%s of a sealed file", c.Op)
		}
		return faultfs.Succeed
	})
	if err := openLog(t, fs, newModel()).Close(); err != nil {
		t.Error(err)
	}
}

// TestCutFileIsRefused cuts complete files to every length.
func TestCutFileIsRefused(t *testing.T) {
	for name, end := range completions {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		appendAll(t, l, 5)
		content := end(t, fs, l).ReadFile("log")
		for length := 1; length < len(content); length++ {
			if got := open(t, content[:length], oplog.Options{}); !errors.Is(got.err, oplog.ErrDamaged) {
				t.Errorf("%s, cut to %d of %d bytes: %v", name, length, len(content), got.err)
			}
		}
		if got := open(t, content, oplog.Options{}); got.err != nil || got.state == "" {
			t.Errorf("%s, not cut: %v", name, got.err)
		}
	}
}

// completions are the ways in which a file becomes complete.
var completions = map[string]func(*testing.T, *faultfs.FS, *oplog.Log) *faultfs.FS{
	"closed": func(t *testing.T, fs *faultfs.FS, l *oplog.Log) *faultfs.FS {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		return fs.Crash(faultfs.Nothing)
	},
	"compacted": func(t *testing.T, fs *faultfs.FS, l *oplog.Log) *faultfs.FS {
		if err := l.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		return fs.Crash(faultfs.Nothing)
	},
	"opened after a crash": func(t *testing.T, fs *faultfs.FS, l *oplog.Log) *faultfs.FS {
		fs = fs.Crash(faultfs.Nothing)
		openLog(t, fs, newModel())
		return fs.Crash(faultfs.Nothing)
	},
	"opened after a kill": func(t *testing.T, fs *faultfs.FS, l *oplog.Log) *faultfs.FS {
		fs = fs.Restart()
		openLog(t, fs, newModel())
		return fs.Crash(faultfs.Nothing)
	},
}

// TestDocumentedExampleIsALog opens the example in the documentation of the package.
func TestDocumentedExampleIsALog(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	for _, line := range regexp.MustCompile(`(?m)^//\s+(\{"(format|op)".*)$`).FindAllSubmatch(doc, -1) {
		content = append(append(content, line[1]...), '\n')
	}
	m := newImage(t).
		batch(at(1, set("acme", "e1", "https://example.com/a"))).
		batch(at(2, unsetAll("acme"))).seal()
	if got := open(t, content, oplog.Options{}); got.err != nil || !bytes.Equal(content, m.content) {
		t.Errorf("%v; the example is\n%s\nand should be\n%s", got.err, content, m.content)
	}
}
