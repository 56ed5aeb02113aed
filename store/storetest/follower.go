package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// follower follows a feed while others make changes, each to a client of its own.
type follower struct {
	ctx   context.Context
	store webhookcfg.Store
	chain *chain

	calls   atomic.Int64
	writing atomic.Int64 // how many writers go on

	mu   sync.Mutex
	made []string // clients whose change was answered
}

// The least that is done, so that neither fast writers nor slow ones leave the feed
// without changes in between its calls, and the most.
const (
	leastChanges, mostChanges = 50, 250
	leastCalls                = 150
	feedWriters               = 4
)

// run follows until the writers are done, and once more. Each answer goes to take,
// with the clients whose change was answered before the call.
func (f *follower) run(e Env, take func(changes cache.Changes, made []string) error) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	if f.chain, err = follow(f.ctx, feed); err != nil {
		return err
	}
	f.writing.Store(feedWriters)
	return together(1+feedWriters, func(n int) error {
		if n > 0 {
			defer f.writing.Add(-1)
			return f.write(n)
		}
		for more := true; more; f.calls.Add(1) {
			more = f.writing.Load() > 0
			made := f.answered()
			changes, err := f.chain.next()
			if err := errors.Join(err, take(changes, made)); err != nil {
				f.calls.Add(leastCalls) // the writers need not wait
				return err
			}
			runtime.Gosched() // to the writers
		}
		return nil
	})
}

func (f *follower) write(writer int) error {
	p := begin(f.ctx, f.store)
	for n := 0; p.err == nil && (n < leastChanges || n < mostChanges && f.calls.Load() < leastCalls); n++ {
		name := fmt.Sprintf("client %d of writer %d", n, writer)
		p.set(name, "e1", hookURL(n))
		f.mu.Lock()
		f.made = append(f.made, name)
		f.mu.Unlock()
		runtime.Gosched() // to the follower
	}
	return p.err
}

func (f *follower) answered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// feedMissesNothing: a call names all whose change was answered before it, unless an
// earlier call did.
func feedMissesNothing(ctx context.Context, e Env) error {
	f := &follower{ctx: ctx, store: e.Store}
	named := make(map[string]bool)
	seen := 0
	return f.run(e, func(changes cache.Changes, made []string) error {
		for _, name := range changes.Clients {
			named[name] = true
		}
		for ; seen < len(made); seen++ {
			if !changes.Reset && !named[made[seen]] {
				return fmt.Errorf("%q was never named, though its change was answered before the last call", made[seen])
			}
		}
		return nil
	})
}

// feedNotEarly: a client that was named, and then did not have the change yet, is
// named again.
func feedNotEarly(ctx context.Context, e Env) error {
	f := &follower{ctx: ctx, store: e.Store}
	early := make(map[string]bool)
	err := f.run(e, func(changes cache.Changes, _ []string) error {
		if changes.Reset {
			clear(early)
		}
		for _, name := range changes.Clients {
			hook, err := e.Store.Resolve(ctx, name, "e1")
			if err != nil {
				return err
			}
			early[name] = hook.URL.IsZero()
		}
		return nil
	})
	for name, was := range early {
		if was && err == nil {
			err = fmt.Errorf("%q was named before its change could be seen, and not again after", name)
		}
	}
	return err
}
