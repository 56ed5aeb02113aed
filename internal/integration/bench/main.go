// Command bench measures the library beside references and other stores in the same
// run and prints the ratios as Markdown tables. Only the ratios mean anything:
// absolute figures move with the machine and with whatever else it does.
//
//	go run . -dir /var/tmp
//
// What writes files wants a folder on a disk: in memory, a sync costs nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// settings say how much is measured.
type settings struct {
	// rounds is how often each side is measured; the median counts.
	rounds int
	// turn is how long one measurement takes.
	turn time.Duration
	// only is text that the name of what is measured has to hold.
	only string
	// dir is where files are made.
	dir string
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 7, "how often each side is measured; the median counts")
	flag.DurationVar(&s.turn, "benchtime", 300*time.Millisecond, "how long one measurement takes")
	flag.StringVar(&s.only, "only", "", "measure only the rows and tables whose name holds this text")
	flag.StringVar(&s.dir, "dir", "", "folder for files, on the disk that is to be measured; empty is the system's folder for temporary files")
	weighed := flag.String("weigh", "", "only open the store in this file, and print in KiB the resident memory before, at most and after it")
	testing.Init()
	flag.Parse()
	if err := s.run(*weighed); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (s settings) run(weighed string) error {
	if weighed != "" {
		return printMemory(weighed)
	}
	if err := flag.Set("test.benchtime", s.turn.String()); err != nil {
		return err
	}
	return s.measure()
}

// measure prints all tables.
func (s settings) measure() error {
	fmt.Printf("%s, %s/%s, %d CPUs; medians of %d interleaved rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.rounds)
	s.printPairs()
	s.printHeaps()
	for _, t := range []struct {
		name  string
		print func(settings) error
	}{
		{"durable sets", durableSets},
		{"durable set-all", durableSetAll},
		{"open 1,000,000 records", opening},
		{"sets beside a compaction", compaction},
	} {
		if !s.wants(t.name) {
			continue
		}
		if err := t.print(s); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// wants reports whether something is to be measured.
func (s settings) wants(name string) bool { return strings.Contains(name, s.only) }

// inFolder calls fn with a new folder, which it then removes.
func (s settings) inFolder(fn func(dir string) error) error {
	dir, err := os.MkdirTemp(s.dir, "bench")
	if err != nil {
		return err
	}
	return errors.Join(fn(dir), os.RemoveAll(dir))
}
