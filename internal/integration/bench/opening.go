package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// opener is a way to read a million records.
type opener struct {
	name string
	// cores is how many of them it may use.
	cores int
	read  func(path string) error
	took  []float64
}

func openers() []*opener {
	return []*opener{
		{name: "**store.OpenFile**, all cores", cores: runtime.NumCPU(), read: openAndClose},
		{name: "**store.OpenFile**, one core", cores: 1, read: openAndClose},
		{name: "one pass into the same table, one core", cores: 1, read: func(path string) error { return onePass(path, new(tableSink)) }},
		{name: "one pass into a map of maps of strings, one core", cores: 1, read: func(path string) error { return onePass(path, mapSink{}) }},
	}
}

// openingBudget is what the first two may take of the third.
var openingBudget = []string{"≤ 0.7 with two cores", "≤ 1.2", "", ""}

func openAndClose(path string) error {
	file, err := openStore(path)
	if err != nil {
		return err
	}
	return file.Close()
}

// opening compares opening a store of a million records with one bare pass over
// its file: checksums, a scan for the values by hand, and the insert into the memory.
func opening(s settings) error {
	return errors.Join(s.open("distinct URLs", records), s.open("1,000 URLs", 1000))
}

// open measures the openers with a store that has so many URLs.
func (s settings) open(title string, urls int) error {
	nth := func(n int) webhookcfg.Change {
		c := nthSet(n)
		c.URL = egress.NewURL(nthURL(n % urls))
		return c
	}
	return s.inFolder(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		if err := makeStore(path, records, nth); err != nil {
			return err
		}
		return s.openInTurns(path, "open 1,000,000 records, "+title)
	})
}

func (s settings) openInTurns(path, title string) error {
	all := openers()
	for range s.rounds {
		for _, o := range all {
			if err := o.run(path); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
	}
	printHeader(title, "time", "÷ the pass into the same table", "budget")
	for i, o := range all {
		printRow(o.name, fmt.Sprintf("%.2f s", median(o.took)), spread(quotients(o.took, all[2].took)), openingBudget[i])
	}
	return s.printResident(path)
}

func (o *opener) run(path string) error {
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.cores))
	began := time.Now()
	err := o.read(path)
	o.took = append(o.took, time.Since(began).Seconds())
	return err
}
