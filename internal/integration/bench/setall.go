package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// durableSetAll compares a durable set-all over a million overrides with the durable
// set of one of them. Each round opens another copy of the same file.
func durableSetAll(s settings) error {
	return s.inFolder(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		one := func(n int) webhookcfg.Change {
			c := nthSet(n)
			c.Client = clientName(0)
			return c
		}
		if err := makeStore(path, records, one); err != nil {
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
		printHeader("durable, 1,000,000 overrides", "set-all", "set of one, median of 50", "ratio", "budget")
		printRow("**store.File**", fmt.Sprintf("%.2f ms", median(alls)), fmt.Sprintf("%.2f ms", median(ones)), spread(quotients(alls, ones)), "≤ 2")
		return nil
	})
}

// setBoth returns how many milliseconds each took.
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
		c := nthSet(n)
		c.Client = clientName(0)
		took, err := timed(file, c)
		if err != nil {
			return 0, 0, err
		}
		ones = append(ones, took)
	}
	all, err = timed(file, webhookcfg.Set(clientName(0), webhookcfg.All(), egress.NewURL(nthURL(0))))
	return all, median(ones), err
}

func timed(file *store.File, c webhookcfg.Change) (milliseconds float64, err error) {
	began := time.Now()
	err = file.Apply(context.Background(), c)
	return time.Since(began).Seconds() * 1000, err
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
