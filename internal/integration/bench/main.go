// Command bench compares the library with references and with other stores in the same run.
// It prints Markdown tables. With -out, it also writes them to README.md, next to plots. You
// can only rely on the ratios, because absolute figures change with the machine and its load.
//
//	go run ./bench -dir /var/tmp -out bench
//
// The -dir directory should be on a disk, because in memory a sync costs nothing. If you're
// root, the database server runs as another user, who must be able to enter the directory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// settings say how much to measure.
type settings struct {
	rounds  int           // measurements of each side, and the median counts
	turn    time.Duration // how long one measurement takes
	records int           // records in a large store
	loaded  int           // records in each store before we measure durable sets
	shared  bool          // start and measure a database server
	only    string        // in the names of the sections to measure
	dir     string        // for files and the server's data
	out     string        // directory for the report, or empty
}

var (
	full  = settings{rounds: 5, turn: 300 * time.Millisecond, records: 1_000_000, loaded: 100_000}
	quick = settings{rounds: 2, turn: 50 * time.Millisecond, records: 50_000, loaded: 5_000}
)

// main measures inside a test, because the database server is made for tests and stops when a
// test ends.
func main() {
	s := full
	flag.IntVar(&s.rounds, "rounds", s.rounds, "measurements of each side; the median counts")
	flag.BoolVar(&s.shared, "shared", true, "start and measure a database server too")
	flag.StringVar(&s.only, "only", "", `measure only sections with this text in their names, such as "open" or "queue"`)
	flag.StringVar(&s.dir, "dir", "", "directory for files and the server, on the disk that you want to measure; empty means the system's temporary directory")
	flag.StringVar(&s.out, "out", "", "directory to write README.md and the plots to; empty writes none")
	isQuick := flag.Bool("quick", false, "run everything quickly to see that it works; the figures mean nothing")
	opened := flag.String("memory", "", "only open the store in this file, and print the resident memory before, at the peak and after, in KiB")
	var other process
	flag.BoolVar(&other.receives, "receive", false, "only receive notifications, until standard input ends")
	flag.StringVar(&other.dsn, "send", "", "only send what's in the outbox in this PostgreSQL database, until standard input ends")
	flag.StringVar(&other.prefix, "prefix", "", "with -send: the start of the tables' names")
	flag.StringVar(&other.webhook, "webhook", "", "with -send: the webhook of all clients")
	testing.Init()
	flag.Parse()
	if other.receives || other.dsn != "" {
		if err := other.run(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *opened != "" {
		if err := printMemory(*opened); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *isQuick {
		q := quick
		q.shared, q.only, q.dir, q.out = s.shared, s.only, s.dir, s.out
		s = q
	}
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "Bench", F: s.run}}, nil, nil)
}

// section is a part of the report.
type section struct {
	name    string
	measure func(settings, *report) error
}

var sections = []section{
	{"durable sets", durableSets},
	{"durable set-all", durableSetAll},
	{"open", opening},
	{"lookups", lookups},
	{"live heap", liveHeap},
	{"requests", requests},
	{"delivery", delivery},
}

// run measures all sections and writes the report.
func (s settings) run(t *testing.T) {
	if err := flag.Set("test.benchtime", s.turn.String()); err != nil {
		t.Fatal(err)
	}
	s.setTempDir(t)
	r := newReport(s)
	for _, section := range sections {
		if !s.wants(section.name) {
			continue
		}
		if err := section.measure(s, r); err != nil {
			t.Fatalf("%s: %v", section.name, err)
		}
	}
	if s.wants("copy of a sender") {
		t.Run("copy", func(t *testing.T) { s.copies(t, r) })
	}
	if s.wants("queue") {
		t.Run("queue", func(t *testing.T) { s.queues(t, r) })
	}
	if s.out != "" && !t.Failed() {
		if err := r.write(s.out); err != nil {
			t.Fatal(err)
		}
	}
}

// setTempDir makes all temporary files go to the directory for the data.
func (s *settings) setTempDir(t *testing.T) {
	if s.dir == "" {
		return
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // on Windows
}

// wants reports whether to measure a section.
func (s settings) wants(name string) bool { return strings.Contains(name, s.only) }

// inTempDir calls fn with a new directory, and then removes the directory.
func inTempDir(fn func(dir string) error) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	return errors.Join(fn(dir), os.RemoveAll(dir))
}

// pair is an operation of the library and its reference.
type pair struct {
	name            string
	ours, reference side
	budget          float64 // limit for the ratio of their times
}

// side measures one operation once.
type side func() result

type result struct {
	nanoseconds float64
	allocations int64
}

// benchmark measures an operation repeatedly.
func benchmark(fn func(b *testing.B)) side {
	return func() result {
		runtime.GC()
		r := testing.Benchmark(fn)
		if r.N == 0 {
			panic("bench: a benchmark failed")
		}
		return result{float64(r.T.Nanoseconds()) / float64(r.N), r.AllocsPerOp()}
	}
}

// measure runs both sides in turn, so that a disturbance affects both. It returns a row of
// the table.
func (p pair) measure(rounds int) (cells []string) {
	var ours, reference []float64
	var o, r result
	for range rounds {
		o, r = p.ours(), p.reference()
		ours, reference = append(ours, o.nanoseconds), append(reference, r.nanoseconds)
	}
	return []string{
		p.name, rounded(median(ours)) + " ns", rounded(median(reference)) + " ns", spread(quotients(ours, reference)),
		fmt.Sprintf("≤ %.4g", p.budget), fmt.Sprintf("%d / %d", o.allocations, r.allocations),
	}
}

var pairHeader = []string{"operation", "library", "reference", "ratio", "budget", "allocations, library / reference"}

// measurePairs adds a table of pairs to a report.
func (s settings) measurePairs(r *report, pairs ...pair) {
	var rows [][]string
	for _, p := range pairs {
		rows = append(rows, p.measure(s.rounds))
	}
	r.table(pairHeader, rows...)
}
