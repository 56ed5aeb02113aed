package oplog_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

func TestNewLogIsEmptyAndDurable(t *testing.T) {
	fs, m := faultfs.New(), newModel()
	openLog(t, fs, m)
	if m.String() != "" {
		t.Errorf("a new log has\n%s", m)
	}
	after := fs.Crash(faultfs.Nothing)
	names := after.Names()
	slices.Sort(names)
	if !slices.Equal(names, []string{"log", "log.lock"}) {
		t.Errorf("after a crash there are %q", names)
	}
	if err := after.Remove("log"); err != nil {
		t.Fatal(err)
	}
	if _, err := oplog.Open(after, "log", newModel(), oplog.Options{}); !errors.Is(err, oplog.ErrDamaged) {
		t.Errorf("then without the log: %v", err)
	}
}

// TestMissingFile opens a missing or empty log with all kinds of files next to it.
func TestMissingFile(t *testing.T) {
	records := string(newImage(t).batch(at(1, setAll("acme", "https://a.example/"))).content)
	header := string(oplog.EncodeHeader(oplog.HeaderLen))
	for name, test := range map[string]struct {
		files map[string]string
		names string // that the error contains, "" for no error
	}{
		"nothing":                        {nil, ""},
		"an empty file":                  {map[string]string{"log": ""}, ""},
		"the lock of a first opening":    {map[string]string{"log.lock": ""}, ""},
		"a temporary file of one":        {map[string]string{"log.lock": "", "log.tmp": header}, ""},
		"the start of one":               {map[string]string{"log.lock": "", "log.tmp": header[:20]}, ""},
		"a lock":                         {map[string]string{"log.lock": "there is a log"}, "log.lock"},
		"a lock and an empty file":       {map[string]string{"log.lock": "there is a log", "log": ""}, "log.lock"},
		"a temporary file":               {map[string]string{"log.tmp": records}, "log.tmp"},
		"a temporary and an empty file":  {map[string]string{"log.tmp": records, "log": ""}, "log.tmp"},
		"both":                           {map[string]string{"log.lock": "there is a log", "log.tmp": records}, "log.lock"},
		"a log without a lock":           {map[string]string{"log": records}, ""},
		"a log and a temporary file":     {map[string]string{"log": records, "log.tmp": "{"}, ""},
		"a log and a longer temporary":   {map[string]string{"log": header, "log.tmp": records}, ""},
		"a log, its lock and a leftover": {map[string]string{"log": records, "log.lock": "there is a log", "log.tmp": ""}, ""},
	} {
		fs := faultfs.New()
		for file, content := range test.files {
			fs.WriteFile(file, []byte(content))
		}
		m := newModel()
		l, err := oplog.Open(fs, "log", m, oplog.Options{})
		if test.names != "" {
			if !errors.Is(err, oplog.ErrDamaged) || !strings.Contains(err.Error(), test.names) {
				t.Errorf("%s: %v", name, err)
			}
			for file, content := range test.files {
				if got := string(fs.ReadFile(file)); got != content {
					t.Errorf("%s: %s was changed to %q", name, file, got)
				}
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (m.Len() == 1) != (test.files["log"] == records) {
			t.Errorf("%s: opened with\n%s", name, m)
		}
		if slices.Contains(fs.Names(), "log.tmp") || len(fs.ReadFile("log.lock")) == 0 {
			t.Errorf("%s: left behind %q", name, fs.Names())
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenedTwice(t *testing.T) {
	fs := faultfs.New()
	first := openLog(t, fs, newModel())
	if _, err := oplog.Open(fs, "log", newModel(), oplog.Options{}); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("a second opener: %v", err)
	}
	if err := first.Append(t.Context(), unsetAll("acme")); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	openLog(t, fs, newModel())
}

// TestOpeningLogsProgress reads a file slowly.
func TestOpeningLogsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := oplog.EncodeHeader(oplog.HeaderLen)
		for i := range 4000 {
			line, err := oplog.Encode(at(i, set("acme", strings.Repeat("e", 1+i%100), "https://a.example/")), int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			content = append(append(content, line...), '\n')
		}
		fs := faultfs.New()
		fs.WriteFile("log", append(content, `{"op":"se`...))
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Op == faultfs.OpRead {
				time.Sleep(time.Second)
			}
			return faultfs.Succeed
		})
		var logged strings.Builder
		l, err := oplog.Open(fs, "log", newModel(), oplog.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{
			`msg="reading log" file=log records=`,
			`msg="log read" file=log records=4000 bytes=`, `duration=`,
			`level=WARN`, `line=4003`, `bytes=9`,
		} {
			if !strings.Contains(logged.String(), want) {
				t.Errorf("not logged: %s\n%s", want, &logged)
			}
		}
	})
}

// TestLogsCreation: the log says that it created its file, and doesn't when it opens it again.
func TestLogsCreation(t *testing.T) {
	fs := faultfs.New()
	for _, want := range []int{1, 0} {
		var logged strings.Builder
		l, err := oplog.Open(fs, "log", newModel(), oplog.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if strings.Count(logged.String(), `msg="log created: `) != want {
			t.Errorf("logged %d times, want %d:\n%s", strings.Count(logged.String(), "created"), want, &logged)
		}
	}
}

// TestCompleteFilesAreSealed blanks the last record of complete files. If a file isn't
// sealed, that could be a crash that lost a record whose caller hadn't returned.
func TestCompleteFilesAreSealed(t *testing.T) {
	for name, end := range completions {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		appendAll(t, l, 3)
		content := end(t, fs, l).ReadFile("log")
		last := bytes.LastIndex(content, []byte(`{"op":"set"`))
		for i := last; content[i] != '\n'; i++ {
			content[i] = 0
		}
		if got := open(t, content, oplog.Options{}); got.err == nil {
			t.Errorf("%s: a missing record was not detected", name)
		}
	}
}
