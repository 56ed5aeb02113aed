package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// durableSetAll compares a durable set-all over many overrides with a durable set of one of
// them. Each round opens a new copy of the same file.
func durableSetAll(s settings, r *report) error {
	return inTempDir(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		one := func(n int) webhookcfg.Change { return nthSetOf(clientName(0), n) }
		if err := makeStore(path, s.records, one); err != nil {
			return err
		}
		var alls, ones []float64
		for range s.rounds {
			all, one, err := setBoth(path, filepath.Join(dir, "copy.jsonl"))
			if err != nil {
				return err
			}
			alls, ones = append(alls, all), append(ones, one)
		}
		r.section("Set-all", "A durable set-all over "+grouped(s.records)+` overrides, compared with a durable set of one of
them in the same store.`)
		r.table([]string{"durable", "set-all", "set of one, median of 50", "ratio", "budget"},
			[]string{"**store.File**", precise(median(alls)) + " ms", precise(median(ones)) + " ms", spread(quotients(alls, ones)), "≤ 2"})
		return nil
	})
}

// setBoth returns how many milliseconds a set-all took, and a set of one.
func setBoth(path, copied string) (all, one float64, err error) {
	if err := copyFile(path, copied); err != nil {
		return 0, 0, err
	}
	file, err := openStore(copied)
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(copied)
	defer file.Close()
	var ones []float64
	for n := range 50 {
		took, err := timed(file, nthSetOf(clientName(0), n))
		if err != nil {
			return 0, 0, err
		}
		ones = append(ones, took)
	}
	all, err = timed(file, webhookcfg.SetChange(clientName(0), webhookcfg.All(), egress.NewURL(nthURL(0))))
	return all, median(ones), err
}

func timed(file *store.File, c webhookcfg.Change) (float64, error) {
	start := time.Now()
	err := file.Apply(context.Background(), c)
	return milliseconds(time.Since(start)), err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	if err := target.Sync(); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
