package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store"
)

// compaction compares how long sets take beside a compaction of a million records
// with how long they take without. What is measured without is measured before
// and after, since the disk is not always the same.
func compaction(s settings) error {
	printHeader("sets beside a compaction of 1,000,000 records", "p99 without", "p99 beside it", "ratio", "budget", "longest beside it", "sets/s, beside ÷ without", "compaction")
	for _, writers := range []int{1, 8} {
		if err := s.compactBeside(writers); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) compactBeside(writers int) error {
	var took, p99s, speeds []float64
	var alone, beside []turn
	for range max(1, s.rounds/3) { // as each takes long
		without, with, err := s.compactOnce(writers)
		if err != nil {
			return err
		}
		alone, beside = append(alone, without), append(beside, with)
		took = append(took, with.took.Seconds())
		p99s = append(p99s, with.quantile(0.99).Seconds()/without.quantile(0.99).Seconds())
		speeds = append(speeds, with.perSecond()/without.perSecond())
	}
	without, with := join(alone), join(beside)
	printRow(plural(writers), inMilliseconds(without.quantile(0.99))+" ms", inMilliseconds(with.quantile(0.99))+" ms",
		spread(p99s), "≤ 5", inMilliseconds(with.quantile(1))+" ms", spread(speeds), fmt.Sprintf("%.1f s", median(took)))
	return nil
}

// compactOnce compacts a file of its own, as the sets beside it make it much larger.
func (s settings) compactOnce(writers int) (alone, beside turn, err error) {
	err = s.inFolder(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		if err := makeStore(path, records, nthSet); err != nil {
			return err
		}
		file, err := openStore(path)
		if err != nil {
			return err
		}
		defer file.Close()
		alone, beside, err = setsBeside(file, writers, 10*s.turn)
		return err
	})
	return alone, beside, err
}

// setsBeside measures sets before, beside and after one compaction.
func setsBeside(file *store.File, writers int, d time.Duration) (alone, beside turn, err error) {
	next := new(atomic.Int64)
	next.Store(records)
	before, err := makeSets(file.Apply, writers, next, lasting(d))
	if err != nil {
		return alone, beside, err
	}
	var ended atomic.Bool
	compacted := make(chan error)
	go func() {
		err := file.Compact(context.Background())
		ended.Store(true)
		compacted <- err
	}()
	beside, err = makeSets(file.Apply, writers, next, ended.Load)
	if compactErr := <-compacted; err == nil {
		err = compactErr
	}
	if err != nil {
		return alone, beside, err
	}
	after, err := makeSets(file.Apply, writers, next, lasting(d))
	return join([]turn{before, after}), beside, err
}
