package storetest

import (
	"fmt"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// The methods of Env return an error that wraps ErrAbsent where the store has not got
// the ability.

func (e Env) durable() error {
	if e.Reopen == nil {
		return fmt.Errorf("%w: the harness has no Reopen, so the store is not taken for durable", ErrAbsent)
	}
	return nil
}

// handles returns the store and more handles on its state.
func (e Env) handles(n int) ([]webhookcfg.Store, error) {
	if e.Another == nil {
		return nil, fmt.Errorf("%w: the harness has no Another, so the store is taken to have one handle at a time", ErrAbsent)
	}
	all := []webhookcfg.Store{e.Store}
	for len(all) < n {
		all = append(all, e.Another(e.Store))
	}
	return all, nil
}

func (e Env) lister() (webhookcfg.Lister, error) {
	return companion[webhookcfg.Lister](e.Store, "webhookcfg.Lister")
}

func (e Env) feed() (cache.Feed, error) {
	return companion[cache.Feed](e.Store, "cache.Feed")
}

func (e Env) versioner() (cache.Versioner, error) {
	return companion[cache.Versioner](e.Store, "cache.Versioner")
}

func (e Env) notifier() (cache.Notifier, error) {
	return companion[cache.Notifier](e.Store, "cache.Notifier")
}

func companion[C any](s webhookcfg.Store, name string) (C, error) {
	c, ok := s.(C)
	if !ok {
		return c, fmt.Errorf("%w: a %T is no %s", ErrAbsent, s, name)
	}
	return c, nil
}
