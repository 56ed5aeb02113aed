package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store"
)

// compaction compares how long sets take while a large store is compacted with how long
// they take otherwise. The latter is measured before and after, since disks vary.
func compaction(s settings, r *report) error {
	var rows [][]string
	for _, writers := range []int{1, 8} {
		row, err := s.compactWhileSetting(writers)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	r.section("Compaction", "Sets while a store of "+grouped(s.records)+" records is compacted, and otherwise.")
	r.table([]string{"sets", "p99 otherwise", "p99 while compacting", "ratio", "budget", "longest while compacting", "sets/s, while ÷ otherwise", "compaction"}, rows...)
	return nil
}

func (s settings) compactWhileSetting(writers int) ([]string, error) {
	var took, p99s, speeds []float64
	var otherwise, during []turn
	for range max(1, s.rounds/3) { // since each takes long
		without, with, err := s.compactOnce(writers)
		if err != nil {
			return nil, err
		}
		otherwise, during = append(otherwise, without), append(during, with)
		took = append(took, with.took.Seconds())
		p99s = append(p99s, with.quantile(0.99).Seconds()/without.quantile(0.99).Seconds())
		speeds = append(speeds, with.perSecond()/without.perSecond())
	}
	without, with := join(otherwise), join(during)
	return []string{
		plural(writers, "writer"), inMilliseconds(without.quantile(0.99)) + " ms", inMilliseconds(with.quantile(0.99)) + " ms",
		spread(p99s), "≤ 5", inMilliseconds(with.quantile(1)) + " ms", spread(speeds), fmt.Sprintf("%.1f s", median(took)),
	}, nil
}

// compactOnce compacts a new file, since the sets make it much larger.
func (s settings) compactOnce(writers int) (otherwise, during turn, err error) {
	err = inTempDir(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		if err := makeStore(path, s.records, nthSet); err != nil {
			return err
		}
		file, err := openStore(path)
		if err != nil {
			return err
		}
		defer file.Close()
		otherwise, during, err = setsAround(file, writers, s.records, 10*s.turn)
		return err
	})
	return otherwise, during, err
}

// setsAround measures sets before, during and after one compaction.
func setsAround(file *store.File, writers, records int, d time.Duration) (otherwise, during turn, err error) {
	next := new(atomic.Int64)
	next.Store(int64(records))
	before, err := makeSets(file.Apply, writers, next, lasting(d))
	if err != nil {
		return otherwise, during, err
	}
	var ended atomic.Bool
	compacted := make(chan error)
	go func() {
		err := file.Compact(context.Background())
		ended.Store(true)
		compacted <- err
	}()
	during, err = makeSets(file.Apply, writers, next, ended.Load)
	if compactErr := <-compacted; err == nil {
		err = compactErr
	}
	if err != nil {
		return otherwise, during, err
	}
	after, err := makeSets(file.Apply, writers, next, lasting(d))
	return join([]turn{before, after}), during, err
}
