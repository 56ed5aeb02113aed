// Command bench measures the stores on database servers beside the servers' own
// clients, and a sender's copy beside a store in memory, in the same run, and prints
// the ratios as Markdown tables. Only the ratios mean anything: absolute figures
// move with the machine and with whatever else it does.
//
//	go run ./bench -dir /var/tmp
//
// The servers are those of package engine and a cluster of package etcdcluster, one
// after the other; each waits for the disk before it acknowledges. They want a
// folder on a disk, which other accounts can enter: in memory, a sync costs nothing.
package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/etcdcluster"
)

// settings say how much is measured.
type settings struct {
	// rounds is how often each side is measured; the median counts.
	rounds int
	// turn is how long one measurement takes.
	turn time.Duration
	// watch is how long staleness is watched on each engine.
	watch time.Duration
	// held is how many entries each side has before calls are measured.
	held int
	// overrides is how many a set-all drops.
	overrides int
	// only is text that the name of what is measured has to hold.
	only string
	// dir is where the servers keep their data.
	dir string
}

// main measures inside a test of its own making, since servers are started for
// tests, and end with them.
func main() {
	etcdcluster.RunMember()
	s := settings{held: 10_000, overrides: 100_000}
	flag.IntVar(&s.rounds, "rounds", 7, "how often each side is measured; the median counts")
	flag.DurationVar(&s.turn, "benchtime", 200*time.Millisecond, "how long one measurement takes")
	flag.DurationVar(&s.watch, "watch", 3*time.Second, "how long staleness is watched on each engine")
	flag.StringVar(&s.only, "only", "", `measure only what has this text in its name, such as "sets, SQLite" or "hit"`)
	flag.StringVar(&s.dir, "dir", "", "folder for the servers' data, on the disk that is to be measured; empty is the system's folder for temporary files")
	tables := testing.InternalTest{Name: "Tables", F: func(t *testing.T) { s.run(t) }}
	testing.Main(regexp.MatchString, []testing.InternalTest{tables}, nil, nil)
}

func (s settings) run(t *testing.T) {
	if err := flag.Set("test.benchtime", s.turn.String()); err != nil {
		t.Fatal(err)
	}
	s.moveIn(t)
	fmt.Printf("%s, %s/%s, %d CPUs; medians of %d interleaved rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.rounds)
	s.printHits(t)
	all := tables()
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) { s.measure(t, b, all) })
	}
	for _, table := range all {
		table.print()
	}
}

// moveIn has all temporary files made in the folder for the data.
func (s settings) moveIn(t *testing.T) {
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

// measure adds the rows of one backend, which runs only if there are some.
func (s settings) measure(t *testing.T, b backend, all []*table) {
	var db database
	for _, table := range all {
		if !s.wants(table.name + ", " + b.name) {
			continue
		}
		if db == nil {
			db = b.start(t)
		}
		rows, err := table.measure(s, t, db)
		if err != nil {
			t.Errorf("%s: %v", table.name, err)
			continue
		}
		for _, row := range rows {
			row[0] = strings.TrimSuffix(b.name+", "+row[0], ", ")
			table.rows = append(table.rows, row)
		}
	}
}

// wants reports whether something is to be measured.
func (s settings) wants(name string) bool { return strings.Contains(name, s.only) }
