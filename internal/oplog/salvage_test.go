package oplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

var silent = slog.New(slog.DiscardHandler)

// salvaged is the part of a file that could be saved.
type salvaged struct {
	state   string
	changes int
	lost    []oplog.Region
	err     error
}

// salvageContent salvages a file and opens the result.
func salvageContent(t *testing.T, content []byte) (s salvaged) {
	t.Helper()
	from, to, m := faultfs.New(), faultfs.New(), newModel()
	from.WriteFile("log", content)
	var size int64
	size, s.changes, s.err = oplog.Salvage(t.Context(), from, "log", to, "fresh", m, silent, func(r oplog.Region) { s.lost = append(s.lost, r) })
	if got := from.ReadFile("log"); !bytes.Equal(got, content) || s.err == nil && size != int64(len(content)) {
		t.Errorf("the file, of %d bytes, was changed, or has not %d bytes", len(content), size)
	}
	if s.err != nil {
		if names := to.Names(); len(names) > 0 {
			t.Errorf("%v, and left %v", s.err, names)
		}
		return s
	}
	if _, _, err := oplog.Check(t.Context(), to, "fresh", silent, func(r oplog.Region) { t.Errorf("torn: %+v", r) }); err != nil {
		t.Error(err)
	}
	got := open(t, to.Crash(faultfs.Nothing).ReadFile("fresh"), oplog.Options{})
	if got.err != nil || got.state != m.String() {
		t.Errorf("the new log: %v\n%s\nwant\n%s", got.err, got.state, m)
	}
	s.state = got.state
	return s
}

// without returns the state without some changes.
func (m *image) without(lost ...int) string {
	left := newModel()
	for i, c := range m.changes {
		if !slices.Contains(lost, i) {
			left.ApplyAll([]webhookcfg.Change{c})
		}
	}
	return left.String()
}

// TestSalvageOfEveryByteFlipped: only the change with the byte is lost, and reported.
func TestSalvageOfEveryByteFlipped(t *testing.T) {
	for name, m := range images(t) {
		m.content = m.content[:min(len(m.content), m.end()+64)]
		for i := 0; i < len(m.content); i += sampled(7) {
			for _, other := range flips(m.content[i])[i%5:][:1] {
				content := bytes.Clone(m.content)
				content[i] = other
				var lost []int
				record, _ := slices.BinarySearch(m.ends, i+1)
				if isRecord := i >= m.ends[0] && i < m.end(); isRecord && m.content[i] != '\n' {
					lost = append(lost, record-1)
				}
				got := salvageContent(t, content)
				want := m.without(lost...)
				if got.err != nil || got.state != want || got.changes != len(m.changes)-len(lost) {
					t.Errorf("%s, byte %d from %q to %q: %v, %d changes\n%s\nwant\n%s", name, i, m.content[i], other, got.err, got.changes, got.state, want)
				}
				isIn := func(r oplog.Region) bool { return int64(i) >= r.Offset && int64(i) < r.Offset+r.Length }
				if len(lost) > 0 && (len(got.lost) != 1 || !isIn(got.lost[0]) || got.lost[0].Line != record+2) {
					t.Errorf("%s, byte %d: lost %+v", name, i, got.lost)
				}
			}
		}
	}
}

// TestSalvageOfEveryLength: what is before the cut is kept, and the rest is reported.
func TestSalvageOfEveryLength(t *testing.T) {
	for name, m := range images(t) {
		for length := 0; length < m.end(); length += sampled(7) {
			got := salvageContent(t, m.content[:length])
			if length < int(oplog.HeaderCopyLen) && errors.Is(got.err, oplog.ErrDamaged) {
				continue // there is nothing in it
			}
			kept := 0
			for kept < len(m.changes) && m.ends[kept+1]-1 <= length {
				kept++
			}
			if got.err != nil || got.state != m.states[kept] || got.changes != kept {
				t.Errorf("%s, cut to %d bytes: %v, %d changes\n%s\nwant\n%s", name, length, got.err, got.changes, got.state, m.states[kept])
			}
			if end := len(got.lost) - 1; m.covered > length && length >= m.ends[0] && (end < 0 || got.lost[end].Offset+got.lost[end].Length != int64(m.covered)) {
				t.Errorf("%s, cut to %d of %d covered bytes: lost %+v", name, length, m.covered, got.lost)
			}
		}
	}
}

// TestSalvageOfDamagedBlocks damages a file of 20 changes, each written on its own, between
// two of them or over some of them.
func TestSalvageOfDamagedBlocks(t *testing.T) {
	m := newImage(t)
	for i := range 20 {
		c := set("acme", fmt.Sprint("e", i%7), fmt.Sprint("https://a.example/", i))
		if i == 9 {
			c = setAll("acme", "https://a.example/")
		}
		m.batch(at(i, c))
	}
	m.seal()
	part := func(from, to int) []byte { return m.content[m.ends[from]:m.ends[to]] }
	start := part(0, 20)
	header := m.content[:m.ends[0]]
	zeros := make([]byte, len(part(5, 7)))
	garbage := bytes.Repeat([]byte("garbage "), 400<<10)
	starts := bytes.Repeat([]byte(`{"op":"`), 300<<10)
	stale := newImage(t)
	for i := range 40 {
		stale.batch(at(i, set("acme", fmt.Sprint("e", i%7), "https://stale.example/")))
	}
	future := stale.content[stale.ends[36]:stale.ends[38]]
	for name, test := range map[string]struct {
		content []byte
		lost    []int
	}{
		"nothing":                      {m.content, nil},
		"no header":                    {start, nil},
		"a zeroed header":              {slices.Concat(make([]byte, len(header)), start), nil},
		"half a header":                {slices.Concat(make([]byte, len(header)/2), m.content[len(header)/2:]), nil},
		"an unfinished header":         {slices.Concat(oplog.EncodeHeader(0), start), nil},
		"a hole":                       {slices.Concat(header, part(0, 5), zeros, part(7, 20)), []int{5, 6}},
		"a hole at the end":            {slices.Concat(header, part(0, 18), make([]byte, len(part(18, 20)))), []int{18, 19}},
		"a hole up to a line":          {slices.Concat(header, part(0, 5), zeros[1:], []byte("x"), part(7, 20)), []int{5, 6}},
		"long garbage":                 {slices.Concat(header, part(0, 5), garbage, part(5, 20)), nil},
		"garbage with starts":          {slices.Concat(header, part(0, 5), starts, part(5, 20)), nil},
		"an end without a start":       {slices.Concat(header, part(0, 5), []byte(`,"crc":"`), part(5, 20)), nil},
		"a start in long garbage":      {slices.Concat(header, part(0, 5), []byte(`x{"op":"`), garbage, part(5, 20)), nil},
		"an empty line":                {slices.Concat(header, part(0, 5), []byte("\n"), part(5, 20)), nil},
		"garbage after a record":       {slices.Concat(m.content[:m.ends[5]-1], []byte("garbage"), m.content[m.ends[5]-1:]), nil},
		"garbage at the end":           {slices.Concat(m.content, garbage), nil},
		"zeros at the end":             {slices.Concat(m.content, make([]byte, 3<<20)), nil},
		"a record without a line end":  {bytes.TrimSuffix(m.content, []byte("\n")), nil},
		"no line ends":                 {bytes.ReplaceAll(m.content, []byte("\n"), nil), nil},
		"a deleted line":               {slices.Concat(header, part(0, 5), part(6, 20)), []int{5}},
		"deleted bytes":                {slices.Concat(m.content[:m.ends[5]+7], m.content[m.ends[5]+20:]), []int{5}},
		"a repeated block":             {slices.Concat(header, part(0, 8), part(3, 8), part(8, 20)), nil},
		"an early copy of a block":     {slices.Concat(header, part(0, 2), part(12, 14), part(2, 20)), nil},
		"a late copy of a block":       {slices.Concat(m.content, part(3, 8)), nil},
		"an old block in a new place":  {slices.Concat(header, part(0, 12), part(3, 6), part(15, 20)), []int{12, 13, 14}},
		"a new block in an old place":  {slices.Concat(header, part(0, 2), part(16, 18), part(4, 20)), []int{2, 3}},
		"a block of a former file":     {slices.Concat(header, part(0, 10), future, part(12, 20)), []int{10, 11}},
		"a small block moved up":       {slices.Concat(header, part(0, 3), part(8, 9), part(3, 8), part(9, 20)), []int{8}},
		"a file in itself":             {slices.Concat(m.content, m.content), nil},
		"every other line deleted":     {slices.Concat(header, part(0, 1), part(2, 3), part(4, 5), part(6, 7)), []int{1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}},
		"only its last line":           {part(19, 20), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}},
		"a repeated block, cut header": {slices.Concat(header[20:], part(0, 8), part(3, 8), part(8, 20)), nil},
	} {
		got := salvageContent(t, test.content)
		if want := m.without(test.lost...); got.err != nil || got.state != want || got.changes != 20-len(test.lost) {
			t.Errorf("%s: %v, %d changes\n%s\nwant\n%s\nlost %v", name, got.err, got.changes, got.state, want, got.lost)
		}
		reported := 0
		for _, r := range got.lost {
			reported += int(r.Length)
		}
		extra := len(test.content) - len(m.content)
		if len(test.lost) > 0 && reported == 0 && bytes.HasPrefix(test.content, header) || extra > 0 && reported < extra && name != "zeros at the end" {
			t.Errorf("%s: lost %v", name, got.lost)
		}
	}
}

// TestSalvageAfterGarbage puts garbage without line ends in front of a record, so that a
// part of the record is the last that is read of a line that is too long.
func TestSalvageAfterGarbage(t *testing.T) {
	m := newImage(t).batch(at(1, setAll("acme", "https://a.example/"))).batch(at(2, unset("acme", "e1")))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 50, 100, m.ends[1] - m.ends[0] - 1} {
		const blocks = 2 << 20
		got := salvageContent(t, slices.Concat(bytes.Repeat([]byte("x"), blocks-n), m.content[m.ends[0]:]))
		if got.err != nil || got.state != m.state() || len(got.lost) != 1 || got.lost[0].Length != int64(blocks-n) {
			t.Errorf("garbage of %d bytes: %v, lost %v\n%s", blocks-n, got.err, got.lost, got.state)
		}
	}
}

// TestSalvageOfOneBatch damages a file that a compaction wrote, so all its lines are one
// batch. If a line was copied within it, it counts once.
func TestSalvageOfOneBatch(t *testing.T) {
	var all []webhookcfg.Change
	for i := range 3 {
		client := fmt.Sprint("c", i)
		all = append(all, setAll(client, "https://a.example/"))
		for n := range 5 {
			all = append(all, at(n, set(client, fmt.Sprint("e", n), "https://a.example/own")))
		}
	}
	m := newImage(t).batch(all...).compacted()
	part := func(from, to int) []byte { return m.content[m.ends[from]:m.ends[to]] }
	header := m.content[:m.ends[0]]
	for name, test := range map[string]struct {
		content []byte
		lost    []int
	}{
		"a hole":                        {slices.Concat(header, part(0, 8), make([]byte, len(part(8, 10))), part(10, 18)), []int{8, 9}},
		"a copy of a base, with damage": {slices.Concat(header, part(0, 4), []byte("x\n"), part(0, 3), []byte("x\n"), part(4, 18)), nil},
	} {
		got := salvageContent(t, test.content)
		if want := m.without(test.lost...); got.err != nil || got.state != want {
			t.Errorf("%s: %v\n%s\nwant\n%s\nlost %v", name, got.err, got.state, want, got.lost)
		}
	}
}

// TestSalvageOfOneHeaderLine: files from the first days of the format had one copy of the
// header. Opening one says so, and its first change isn't taken for the other copy.
func TestSalvageOfOneHeaderLine(t *testing.T) {
	header := oplog.EncodeHeaderCopy(1, oplog.HeaderCopyLen)
	m := &image{t: t, content: header, model: newModel()}
	for n := range 3 {
		m.batch(set("acme", fmt.Sprint("e", n), "https://a.example/"))
	}
	if got := open(t, m.content, oplog.Options{}); !errors.Is(got.err, oplog.ErrDamaged) ||
		!strings.Contains(got.err.Error(), "line 2") || !strings.Contains(got.err.Error(), "one line of header") {
		t.Errorf("opened: %v", got.err)
	}
	got := salvageContent(t, m.content)
	if got.err != nil || got.state != m.model.String() || got.changes != 3 || len(got.lost) > 0 {
		t.Errorf("salvaged %d changes: %v, lost %v\n%s", got.changes, got.err, got.lost, got.state)
	}
}

func TestSalvageRefusals(t *testing.T) {
	content := images(t)["closed"].content
	newer := []byte(`{"format":"webhookcfg log","version":3}` + "\n")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx     context.Context
		content []byte
		fresh   string
		is      error
		says    string
	}{
		"a later version":        {t.Context(), newer, "fresh", nil, "version 2"},
		"another file":           {t.Context(), []byte("to whom it may concern\n"), "fresh", oplog.ErrDamaged, "neither a header nor an intact change"},
		"an empty file":          {t.Context(), nil, "fresh", oplog.ErrDamaged, "neither a header nor an intact change"},
		"an existing file":       {t.Context(), content, "taken", fs.ErrExist, "taken"},
		"its own name":           {t.Context(), content, "log", fs.ErrExist, "log"},
		"the name of a lock":     {t.Context(), content, "fresh.lock", nil, "reserved"},
		"a temporary file":       {t.Context(), content, "half", fs.ErrExist, "half.tmp"},
		"no more time":           {cancelled, content, "fresh", context.Canceled, ""},
		"a file that is not new": {t.Context(), content, "empty", fs.ErrExist, "empty"},
	} {
		fsys := faultfs.New()
		fsys.WriteFile("log", test.content)
		fsys.WriteFile("taken", []byte("precious"))
		fsys.WriteFile("empty", nil)
		fsys.WriteFile("half.tmp", []byte("half"))
		before, created := len(fsys.Names()), fsys.Count(faultfs.OpCreate)
		_, _, err := oplog.Salvage(test.ctx, fsys, "log", fsys, test.fresh, newModel(), silent, func(oplog.Region) {})
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		if n := fsys.Count(faultfs.OpCreate) - created; errors.Is(test.is, fs.ErrExist) && name != "a temporary file" && n > 0 {
			t.Errorf("%s: a file was created", name)
		}
		if got := fsys.ReadFile("log"); !bytes.Equal(got, test.content) || string(fsys.ReadFile("taken")) != "precious" || len(fsys.Names()) != before {
			t.Errorf("%s: left %v", name, fsys.Names())
		}
	}
	fsys := faultfs.New()
	openLog(t, fsys, newModel())
	if _, _, err := oplog.Salvage(t.Context(), fsys, "log", fsys, "fresh", newModel(), silent, func(oplog.Region) {}); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("an open log: %v", err)
	}
	if _, _, err := oplog.Check(t.Context(), fsys, "log", silent, func(oplog.Region) {}); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("the check of an open log: %v", err)
	}
}

// TestSalvageDoesNotOverwrite has another process create a file while the new one is
// written.
func TestSalvageDoesNotOverwrite(t *testing.T) {
	fsys := faultfs.New()
	fsys.WriteFile("log", images(t)["closed"].content)
	fsys.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync {
			fsys.WriteFile("fresh", []byte("precious"))
		}
		return faultfs.Succeed
	})
	_, _, err := oplog.Salvage(t.Context(), fsys, "log", fsys, "fresh", newModel(), silent, func(oplog.Region) {})
	if got := string(fsys.ReadFile("fresh")); !errors.Is(err, fs.ErrExist) || got != "precious" || len(fsys.Names()) != 2 {
		t.Errorf("%v, the file is now %q, and there are %v", err, got, fsys.Names())
	}
}

// TestFailedSalvageLeavesNoFile makes each file call fail, in every way.
func TestFailedSalvageLeavesNoFile(t *testing.T) {
	content := images(t)["closed"].content
	for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter} {
		for k, isReached := 1, true; isReached; k++ {
			from, to := faultfs.New(), faultfs.New()
			from.WriteFile("log", content)
			failed := failCall(to, k, outcome)
			_, _, err := oplog.Salvage(t.Context(), from, "log", to, "fresh", newModel(), silent, func(oplog.Region) {})
			names := to.Names()
			switch {
			case err == nil && !slices.Equal(names, []string{"fresh"}),
				err == nil && open(t, to.Crash(faultfs.Nothing).ReadFile("fresh"), oplog.Options{}).err != nil:
				t.Errorf("%v of call %d, %s %s: left %v", outcome, k, failed.Op, failed.Name, names)
			case err != nil && len(names) > 0 && failed.Op != faultfs.OpCreate && !(failed.Op == faultfs.OpLock && strings.HasSuffix(failed.Name, ".tmp")):
				t.Errorf("%v of call %d, %s %s: %v, and left %v", outcome, k, failed.Op, failed.Name, err, names)
			}
			isReached = failed.N == k
		}
	}
}

// TestSalvageReadsBack leaves out each write, as if the disk had lost it.
func TestSalvageReadsBack(t *testing.T) {
	for k, reached := 1, true; reached; k++ {
		from, to, writes := faultfs.New(), faultfs.New(), 0
		from.WriteFile("log", images(t)["closed"].content)
		reached = false
		to.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Op == faultfs.OpWrite {
				if writes++; writes == k {
					reached = true
					return faultfs.Pretend
				}
			}
			return faultfs.Succeed
		})
		_, _, err := oplog.Salvage(t.Context(), from, "log", to, "fresh", newModel(), silent, func(oplog.Region) {})
		if names := to.Names(); reached && (!errors.Is(err, oplog.ErrDamaged) || len(names) > 0) {
			t.Errorf("without write %d: %v, and left %v", k, err, names)
		}
	}
}

// TestCheck reads files of every kind, and leaves them as they are.
func TestCheck(t *testing.T) {
	for name, m := range images(t) {
		for _, torn := range []string{"", `{"op":"se`} {
			if torn != "" && strings.Contains(name, "preallocated") {
				continue
			}
			content := append(bytes.Clone(m.content), torn...)
			for _, damage := range []bool{false, true} {
				if damage {
					content[m.ends[0]-2] ^= 1
					content[3] ^= 1
				}
				fsys := faultfs.New()
				fsys.WriteFile("log", content)
				var lost []oplog.Region
				size, changes, err := oplog.Check(t.Context(), fsys, "log", silent, func(r oplog.Region) { lost = append(lost, r) })
				if damage != errors.Is(err, oplog.ErrDamaged) || !damage && (err != nil || size != int64(len(content)) || changes != len(m.changes) || len(lost) != len(torn)/9) {
					t.Errorf("%s, torn %t, damaged %t: %d bytes, %d changes, %v, %v", name, torn != "", damage, size, changes, lost, err)
				}
				if got := fsys.Names(); !bytes.Equal(fsys.ReadFile("log"), content) || len(got) != 1 {
					t.Errorf("%s: the check left %v", name, got)
				}
			}
		}
	}
}
