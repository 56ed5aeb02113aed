package etcdstore

import (
	"cmp"
	"errors"
	"strings"
	"time"
)

// Options are the settings of a [Store]. Nil, like the zero value, is safe.
type Options struct {
	// Prefix is what all keys begin with; it ends in a slash. "" means "webhookcfg/".
	Prefix string
	// BarrierTimeout is how long [Store.Changes] waits at most, also where its ctx
	// would let it. Zero means 2 seconds.
	BarrierTimeout time.Duration
	// History is how many changes the store remembers for [Store.Changes], in memory.
	// Who asks so seldom that there were more in between, gets a Reset. Zero means
	// 65,536, which take some 10 MB.
	History int
}

const (
	defaultPrefix         = "webhookcfg/"
	defaultBarrierTimeout = 2 * time.Second
	defaultHistory        = 1 << 16
)

// withDefaults returns the options with nothing left open.
func (o *Options) withDefaults() (Options, error) {
	if o == nil {
		o = new(Options)
	}
	all := Options{
		Prefix:         cmp.Or(o.Prefix, defaultPrefix),
		BarrierTimeout: cmp.Or(o.BarrierTimeout, defaultBarrierTimeout),
		History:        cmp.Or(o.History, defaultHistory),
	}
	switch {
	case !strings.HasSuffix(all.Prefix, "/"):
		return all, errors.New("etcdstore: the prefix does not end in a slash")
	case all.BarrierTimeout < 0:
		return all, errors.New("etcdstore: the timeout of the barrier is negative")
	case all.History < 0:
		return all, errors.New("etcdstore: the length of the history is negative")
	}
	return all, nil
}
