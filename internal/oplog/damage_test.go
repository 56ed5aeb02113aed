package oplog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// images are small log files of every shape.
func images(t *testing.T) map[string]*image {
	sample := func() *image {
		return newImage(t).
			batch(at(1, setAll("acme", "https://a.example/1"))).
			batch(at(2, set("other", "e1", "https://b.example/\"\\")), at(3, unset("acme", "e2")))
	}
	return map[string]*image{
		"closed":                            sample().seal(),
		"open, preallocated":                sample().preallocate(),
		"compacted":                         newImage(t).batch(at(1, set("acme", "e1", "https://a.example/1"))).compacted(),
		"compacted, appended":               sample().compacted().batch(at(6, unset("acme", "e1"))),
		"compacted, appended, preallocated": sample().compacted().batch(at(6, unset("acme", "e1"))).batch(at(7, unsetAll("acme"))).preallocate(),
		"opened again":                      sample().seal().batch(at(6, unset("acme", "e1"))),
		"closed again":                      sample().seal().batch(at(6, unset("acme", "e1"))).seal(),
		"new":                               newImage(t),
	}
}

func TestIntactFilesOpen(t *testing.T) {
	for name, m := range images(t) {
		got := open(t, m.content, oplog.Options{})
		if got.err != nil || got.state != m.state() || strings.Contains(got.logged, "WARN") {
			t.Errorf("%s: %v, %s\n%s", name, got.err, got.logged, got.state)
		}
		if again := open(t, got.content, oplog.Options{}); !bytes.Equal(again.content, got.content) {
			t.Errorf("%s: reopening changed it:\n%s\n%s", name, got.content, again.content)
		}
	}
}

// violation describes how opening a changed file went wrong, or returns "" if it didn't. The
// change starts at an offset.
func (m *image) violation(got opened, changed int) string {
	switch {
	case got.err != nil, got.state == m.state():
		return ""
	case changed < m.sealed:
		return "a change of sealed bytes was not detected"
	case !slices.Contains(m.states, got.state):
		return "a state that never was"
	case !strings.Contains(got.logged, "WARN"):
		return "the cut was not logged"
	}
	return ""
}

// flips returns the bytes that replace a byte.
func flips(b byte) []byte {
	others := []byte{0, '\n', ' ', '"', '\\', '}', 0xFF}
	for bit := range 8 {
		others = append(others, b^1<<bit)
	}
	return slices.DeleteFunc(others, func(other byte) bool { return other == b })
}

// full tries every value of a byte and every call. Without it, a sample takes seconds.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

// sampled returns n, or 1 in full: every nth case is tried.
func sampled(n int) int {
	if *full {
		return 1
	}
	return n
}

// countViolations opens an image with each of its bytes changed.
func countViolations(t *testing.T, m *image, o oplog.Options, report func(string)) (opens int) {
	for i := range m.content {
		others := flips(m.content[i])
		if !*full {
			others = others[i%5:][:1]
		}
		for _, other := range others {
			changed := bytes.Clone(m.content)
			changed[i] = other
			opens++
			if v := m.violation(open(t, changed, o), i); v != "" {
				report(fmt.Sprintf("byte %d from %q to %q: %s", i, m.content[i], other, v))
			}
		}
	}
	return opens
}

func TestEveryByteFlipped(t *testing.T) {
	for name, m := range images(t) {
		m.content = m.content[:min(len(m.content), m.end()+64)] // the preallocated bytes are all alike
		opens := countViolations(t, m, oplog.Options{}, func(v string) { t.Errorf("%s: %s", name, v) })
		t.Logf("%s: %d files opened", name, opens)
	}
}

func TestFlipsAreMissedWithoutChecksums(t *testing.T) {
	found := 0
	countViolations(t, images(t)["closed"], oplog.SkipChecksums(oplog.Options{}), func(string) { found++ })
	if found == 0 {
		t.Error("the test of flipped bytes cannot fail")
	}
}

func TestEveryLength(t *testing.T) {
	for name, m := range images(t) {
		for length := 0; length < len(m.content); length += sampled(3) {
			got := open(t, m.content[:length], oplog.Options{})
			if v := m.lengthViolation(got, length); v != "" {
				t.Errorf("%s cut to %d bytes: %s (%v)\n%s", name, length, v, got.err, got.state)
			}
		}
	}
}

// lengthViolation is violation for a truncated file. A crash can truncate a file, but not
// into what the header covers.
func (m *image) lengthViolation(got opened, length int) string {
	records := 0
	for records+1 < len(m.ends) && m.ends[records+1] <= length {
		records++
	}
	switch {
	case length < m.covered && got.err == nil:
		return "opened without what the header covers"
	case length >= m.covered && got.err != nil:
		return "refused, though a crash may have left it"
	case got.err == nil && got.state != m.states[records]:
		return "a state that was not at this moment"
	}
	return ""
}

func TestEverySectorLost(t *testing.T) {
	long := strings.Repeat("x", 300)
	m := newImage(t).batch(at(1, setAll("acme", "https://a.example/"+long)))
	for i := range 5 {
		m.batch(at(i, set("acme", fmt.Sprint("e", i), "https://a.example/"+long)))
	}
	var last []webhookcfg.Change
	for i := range 8 {
		last = append(last, at(10+i, set("acme", fmt.Sprint("f", i), "https://a.example/"+long)))
	}
	before := len(m.states) - 1
	m.batch(last...)
	fill := func(content []byte, sector int, blank byte) {
		for i := sector * 512; i < min(len(content), (sector+1)*512); i++ {
			if i >= m.sealed || sector*512 < m.sealed && (sector+1)*512 <= m.sealed {
				content[i] = blank
			}
		}
	}
	first, end := m.sealed/512, (len(m.content)+511)/512
	for sector := range first { // of the sealed bytes
		content := bytes.Clone(m.content)
		fill(content, sector, 0)
		if got := open(t, content, oplog.Options{}); got.err == nil {
			t.Errorf("the loss of sector %d, which was on disk, was not detected", sector)
		}
	}
	opens := 0
	for lost := range 1 << (end - first) { // of the last batch
		for _, blank := range []byte{0, '\n'} {
			content := bytes.Clone(m.content)
			for i := range end - first {
				if lost>>i&1 == 1 {
					fill(content, first+i, blank)
				}
			}
			got := open(t, content, oplog.Options{})
			opens++
			if got.err != nil || !slices.Contains(m.states[before:], got.state) {
				t.Errorf("sectors %b from %d lost to %q: %v", lost, first, blank, got.err)
			}
		}
	}
	t.Logf("%d files opened", opens)
}

// TestTornTails opens files with all kinds of bytes after the last sealed one, where you can
// expect one batch.
func TestTornTails(t *testing.T) {
	m := newImage(t).batch(at(1, setAll("acme", "https://a.example/1"))).batch(at(2, setAll("acme", "https://a.example/2")))
	before, last := string(m.content[:m.ends[1]]), string(m.content[m.ends[1]:])
	end := len(last) - 1
	other, err := oplog.Encode(at(3, unset("acme", "e1")), int64(len(before)))
	if err != nil {
		t.Fatal(err)
	}
	later, err := oplog.Encode(at(3, unset("acme", "e1")), int64(len(before)+len(last)))
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(format string) string {
		return string(oplog.Seal(fmt.Appendf(nil, format, len(before)))) + "\n"
	}
	hole := strings.Repeat("\x00", 100)
	for name, test := range map[string]struct {
		rest  string
		torn  bool
		state string
	}{
		"all of it":                     {last, true, m.states[2]},
		"nothing":                       {"", true, m.states[1]},
		"half of it":                    {last[:end/2], true, m.states[1]},
		"half of it, and blanks":        {last[:end/2] + "\n\n\n", true, m.states[1]},
		"half of it, and zeros":         {last[:end/2] + hole, true, m.states[1]},
		"no end of line":                {last[:end], true, m.states[1]},
		"no end of line, and zeros":     {last[:end] + hole, true, m.states[1]},
		"a hole in it":                  {last[:20] + hole + last[40:], true, m.states[1]},
		"a hole for it and another":     {hole + "\n" + string(other) + "\n", true, m.states[1]},
		"a hole, and the end of it":     {hole + last[40:], true, m.states[1]},
		"a hole of one byte before it":  {"\x00" + last[1:], true, m.states[1]},
		"only blanks":                   {"\n\n\n\n", true, m.states[1]},
		"a hole, and a later batch":     {hole + "\n" + string(later) + "\n", false, ""},
		"half of it, and a later batch": {last[:end/2] + "\n\n" + string(later) + "\n", false, ""},
		"another byte":                  {strings.Replace(last, "acme", "acne", 1), false, ""},
		"another byte, and blanks":      {strings.Replace(last, "acme", "acne", 1) + "\n\n", false, ""},
		"a missing byte":                {strings.Replace(last, "acme", "ame", 1), false, ""},
		"a line end in it":              {last[:40] + "\n" + last[40:], false, ""},
		"a zero in it":                  {last[:40] + "\x00" + last[40:], false, ""},
		"something else":                {"to whom it may concern\n", false, ""},
		"something else without an end": {"to whom", false, ""},
		"a record of an unknown kind":   {sealed(`{"op":"rename","synced":%d`), false, ""},
		"an id of invalid UTF-8":        {sealed(`{"op":"unset","client":"` + "\xff" + `","scope":"all","time":"2026-01-02T12:00:00Z","synced":%d`), false, ""},
		"something else after it":       {last + "x", false, m.states[2]},
		"something else after a record": {last[:end] + "x\n", false, ""},
	} {
		got := open(t, []byte(before+test.rest), oplog.Options{})
		if (got.err == nil) != test.torn || test.torn && got.state != test.state {
			t.Errorf("%s: %v\n%s", name, got.err, got.state)
		}
	}
}

func TestDamageErrorNamesThePlace(t *testing.T) {
	m := images(t)["closed"]
	content := bytes.Clone(m.content)
	content[m.ends[1]+10] ^= 1
	got := open(t, content, oplog.Options{})
	for _, want := range []string{"log, line 4", fmt.Sprint("at byte ", m.ends[1]), "restore a backup"} {
		if got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("the error does not contain %q: %v", want, got.err)
		}
	}
	if got.err != nil && strings.Contains(got.err.Error(), "example/") {
		t.Errorf("the error reveals a URL: %v", got.err)
	}
}

func TestLinesOutOfPlace(t *testing.T) {
	m := images(t)["closed"]
	line := func(i int) []byte { return m.content[m.ends[i-1]:m.ends[i]] }
	for name, content := range map[string][]byte{
		"missing":  bytes.Replace(m.content, line(1), nil, 1),
		"repeated": bytes.Replace(m.content, line(1), bytes.Repeat(line(1), 2), 1),
		"swapped":  slices.Concat(m.content[:m.ends[0]], line(2), line(1), m.content[m.ends[2]:]),
		"too soon": append(bytes.Clone(m.content[:m.ends[0]]), line(3)...),
		"blank":    bytes.Replace(m.content, line(1), append([]byte("\n"), line(1)...), 1),
	} {
		if got := open(t, content, oplog.Options{}); got.err == nil {
			t.Errorf("a line %s was not detected", name)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"text":        "to whom it may concern\n",
		"zeros":       strings.Repeat("\x00", 4096),
		"blanks":      "\n\n\n",
		"JSON":        "{}\n",
		"garbage":     string(oplog.EncodeHeader(oplog.HeaderLen)) + strings.Repeat("garbage ", 1<<19),
		"much":        string(oplog.EncodeHeader(oplog.HeaderLen)) + strings.Repeat("\x00", 3<<20),
		"header only": string(oplog.EncodeHeader(1000)),
		"half of it":  string(oplog.EncodeHeaderCopy(oplog.Version, oplog.HeaderLen)),
		"unfinished":  string(oplog.EncodeHeader(0)),
	} {
		if got := open(t, []byte(content), oplog.Options{}); got.err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func TestNewerVersionIsLeftAlone(t *testing.T) {
	for _, content := range []string{
		`{"format":"webhookcfg log","version":3}` + "\n" + `{"what":"ever"}` + "\n",
		`{"format":"webhookcfg log","version":10,"more":true}` + "\n",
		strings.Repeat("\x00", 300) + `{"format":"webhookcfg log","version":3}` + "\n",
	} {
		fs := faultfs.New()
		fs.WriteFile("log", []byte(content))
		_, err := oplog.Open(fs, "log", newModel(), oplog.Options{})
		if err == nil || errors.Is(err, oplog.ErrDamaged) || !strings.Contains(err.Error(), "version") {
			t.Errorf("error is %v", err)
		}
		if got := fs.ReadFile("log"); string(got) != content {
			t.Errorf("the file was changed to %q", got)
		}
	}
}
