package oplog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// image is a log file under construction, with the state of its records.
type image struct {
	t       *testing.T
	content []byte
	model   *model
	// sealed is the offset up to which the file is sealed.
	sealed int
	// covered is the offset up to which the header covers the file, and spare the copy of
	// the header that is written next.
	covered, spare int
	// ends[i] is the offset after record i, and states[i] the state after it; the
	// first are those of the empty log.
	ends    []int
	states  []string
	changes []webhookcfg.Change
}

func newImage(t *testing.T) *image {
	m := &image{t: t, content: oplog.EncodeHeader(oplog.HeaderLen), model: newModel()}
	m.sealed, m.covered = len(m.content), len(m.content)
	m.ends, m.states = []int{m.sealed}, []string{""}
	return m
}

// batch appends changes that were written together.
func (m *image) batch(changes ...webhookcfg.Change) *image {
	m.sealed = len(m.content)
	for _, c := range changes {
		line, err := oplog.Encode(c, int64(m.sealed))
		if err != nil {
			m.t.Fatal(err)
		}
		m.content = append(append(m.content, line...), '\n')
		m.model.ApplyAll([]webhookcfg.Change{c})
		m.changes = append(m.changes, c)
		m.ends, m.states = append(m.ends, len(m.content)), append(m.states, m.model.String())
	}
	return m
}

// seal has the header cover the file so far.
func (m *image) seal() *image {
	m.sealed, m.covered = len(m.content), len(m.content)
	copy(m.content[m.spare*int(oplog.HeaderCopyLen):], oplog.EncodeHeaderCopy(oplog.Version, int64(m.covered)))
	m.spare = 1 - m.spare
	return m
}

// preallocate appends blank lines.
func (m *image) preallocate() *image {
	m.content = append(m.content, bytes.Repeat([]byte("\n"), 2000)...)
	return m
}

// compacted makes the file so far the result of a compaction.
func (m *image) compacted() *image {
	m.sealed, m.covered, m.spare = len(m.content), len(m.content), 0
	copy(m.content, oplog.EncodeHeader(int64(m.covered)))
	return m
}

// end returns the offset after the last record.
func (m *image) end() int { return m.ends[len(m.ends)-1] }

func (m *image) state() string { return m.states[len(m.states)-1] }

// opened is the result of opening a file.
type opened struct {
	state string
	// content is the file after the log was closed again.
	content []byte
	logged  string
	err     error
}

// open opens a log with this content, as if it had been opened before, and closes it.
func open(t *testing.T, content []byte, o oplog.Options) opened {
	t.Helper()
	fs := faultfs.New()
	fs.WriteFile("log", content)
	fs.WriteFile("log.lock", []byte("there is a log"))
	var logged strings.Builder
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	m := newModel()
	l, err := oplog.Open(fs, "log", m, o)
	if err == nil {
		err = l.Close()
	}
	got := opened{state: m.String(), content: fs.ReadFile("log"), logged: logged.String(), err: err}
	if err != nil && !bytes.Equal(got.content, content) {
		t.Errorf("the file was refused but changed (%v)", err)
	}
	if err != nil && !errors.Is(err, oplog.ErrDamaged) && !strings.Contains(err.Error(), "of the format") {
		t.Errorf("refused with %v", err)
	}
	return got
}
