package oplog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// FuzzDecode looks for a line that decodes wrongly.
func FuzzDecode(f *testing.F) {
	for _, line := range goldenLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		oplog.IsCutShort(line)
		// Try it as it is, and with the right checksum, because fuzzing wouldn't find that.
		for _, line := range [][]byte{line, oplog.Seal(line)} {
			c, synced, ok := oplog.Decode(line)
			if !ok {
				continue
			}
			again, err := oplog.Encode(c, synced)
			if err != nil {
				t.Fatalf("%q was decoded to a change that cannot be encoded: %v", line, err)
			}
			if !bytes.Equal(again, line) {
				t.Errorf("%q\nwas decoded like\n%q", line, again)
			}
		}
	})
}

func goldenLines(f *testing.F) (lines [][]byte) {
	for _, content := range goldenContents(f) {
		lines = append(lines, bytes.Split(content, []byte("\n"))...)
	}
	return lines
}

func goldenContents(f *testing.F) (contents [][]byte) {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) == 0 {
		f.Fatal("no golden files: ", err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		contents = append(contents, content)
	}
	return contents
}

// FuzzOpen looks for a file that is opened with a wrong state.
func FuzzOpen(f *testing.F) {
	for _, content := range goldenContents(f) {
		f.Add(content)
		f.Add(content[:len(content)*2/3])
		f.Add(append(bytes.Clone(content), make([]byte, 600)...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		checkOpened(t, content)
		checkOpened(t, resealed(content))
	})
}

// resealed returns content with the right checksum at the end of each line that has one,
// because fuzzing wouldn't find it.
func resealed(content []byte) []byte {
	lines := bytes.SplitAfter(content, []byte("\n"))
	for i, line := range lines {
		if body, _, found := bytes.Cut(line, []byte(`,"crc":"`)); found {
			lines[i] = append(oplog.Seal(body), '\n')
		}
	}
	return bytes.Join(lines, nil)
}

// checkOpened opens a file and compares the state with its lines.
func checkOpened(t *testing.T, content []byte) {
	got := open(t, content, oplog.Options{})
	if len(content) == 0 {
		return
	}
	if got.err != nil {
		salvageContent(t, content) // whatever it is, the new log is intact
		return
	}
	want := newModel()
	lines := bytes.Split(content[oplog.HeaderLen:], []byte("\n"))
	for _, line := range lines[:len(lines)-1] {
		c, ok := readSlowly(line)
		if !ok {
			break
		}
		want.ApplyAll([]webhookcfg.Change{c})
	}
	if got.state != want.String() {
		t.Errorf("opened as\n%s\nwant\n%s", got.state, want)
	}
	if s := salvageContent(t, content); s.err != nil || s.state != got.state && !strings.Contains(got.logged, "WARN") {
		t.Errorf("salvaged as\n%s\nwant\n%s, %v", s.state, got.state, s.err)
	}
}

// readSlowly decodes a line independently of the code under test.
func readSlowly(line []byte) (c webhookcfg.Change, ok bool) {
	var says struct{ Op, Client, Entity, Scope, URL, Time, CRC string }
	body, _, _ := bytes.Cut(line, []byte(`,"crc":"`))
	sum := fmt.Sprintf("%08x", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	if json.Unmarshal(line, &says) != nil || says.CRC != sum {
		return c, false
	}
	scope := webhookcfg.Entity(says.Entity)
	if says.Scope == "all" {
		scope = webhookcfg.All()
	}
	switch says.Op {
	case "set":
		c = webhookcfg.SetChange(says.Client, scope, egress.NewURL(says.URL))
	case "unset":
		c = webhookcfg.UnsetChange(says.Client, scope)
	}
	var err error
	c.Time, err = time.Parse(time.RFC3339, says.Time)
	return c, err == nil && c.Validate() == nil
}
