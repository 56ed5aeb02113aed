package main

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// setAll compares a set-all over many overrides with the set of one of them. Each
// round has a client of its own.
func (s settings) setAll(t *testing.T, db database) ([][]string, error) {
	st := db.open(t, oursPrefix)
	var alls, ones []float64
	for round := range s.rounds {
		name := fmt.Sprint("large-client-", round)
		nth := func(n int) webhookcfg.Change { return nthSetOf(name, n) }
		if err := db.fill(t, oursPrefix, s.overrides, nth); err != nil {
			return nil, err
		}
		one, err := setOnes(t, st, nth)
		if err != nil {
			return nil, err
		}
		all, err := setAllOf(t, st, name, nth(s.overrides-1).Scope.Entity())
		if err != nil {
			return nil, err
		}
		alls, ones = append(alls, all), append(ones, one)
	}
	return [][]string{{grouped(s.overrides), precise(median(alls)), precise(median(ones)), spread(alls, ones), "≤ 2"}}, nil
}

// setOnes returns how many milliseconds the set of one override takes.
func setOnes(t *testing.T, st webhookcfg.Store, nth func(n int) webhookcfg.Change) (float64, error) {
	var took []float64
	for n := range 50 {
		began := time.Now()
		if err := st.Apply(t.Context(), nth(n)); err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(began)))
	}
	return median(took), nil
}

// setAllOf returns how many milliseconds a set-all takes, which must drop the last override.
func setAllOf(t *testing.T, st webhookcfg.Store, client, last string) (float64, error) {
	if err := expect(t, st, client, last, webhookcfg.SourceOverride); err != nil {
		return 0, err
	}
	c := timed(webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(hookURL(0))))
	began := time.Now()
	if err := st.Apply(t.Context(), c); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(began))
	return took, expect(t, st, client, last, webhookcfg.SourceBase)
}
