package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
	"example.com/go-webhookcfg/webhookcfg"
)

// readTimeout bounds a read of the store: callers share it, and none of them can end it.
const readTimeout = 20 * time.Second

var errUnwanted = errors.New("cache: no caller waits for the read")

// reads are the reads of the store that are in progress or wait for their turn. What they
// return goes to entries, and a change drops it from both.
//
// Why no result is older than the bound. Let c be a change that the result of a
// Resolve lacks. The result comes from a read of the store, of an entity or a page, which
// started before c was visible there.
//
//  1. A read that lacks c and started at t proves that c became visible after t. So
//     entry.started vouches for an entry, and read.since for every caller that shares
//     the read.
//  2. Suppose that a poll of a Feed started at t, when c was visible, and has ended. It
//     named the client, or an earlier poll did, in a response that arrived when c was
//     visible. Then the client was dropped. If the read had ended by then, its result was
//     dropped with it; if not, it belongs to an earlier epoch, and is not kept. So an
//     entry that is found after a poll ended lacks only changes later than t:
//     entries.polled vouches for all entries.
//  3. Suppose that a check of a client's version started at t, and returned what an
//     earlier check returned. Nothing changed between the two. When the earlier check had
//     ended, the client was dropped, so that the reads of its entries came later. So
//     client.checked vouches for its entries.
//
// If one of these instants is later than the start of a Resolve less the bound, the
// result is within the bound.
type reads struct {
	store    webhookcfg.Store
	lister   webhookcfg.Lister // nil if there is none
	entries  *entries
	figures  *figures
	clock    clock
	timeout  time.Duration
	joinable time.Duration // the age up to which a read can be joined
	turns    chan struct{} // holds a value for each read in progress
	ctx      context.Context
	all      sync.WaitGroup

	mu     sync.Mutex // for what follows
	closed bool
	// byClient has the clients with reads in progress or waiting for their turn.
	byClient map[string]*clientReads
	// changing counts the changes in progress through the Cache, by client.
	changing map[string]int
}

// clientReads are the reads of one client that are in progress or wait for their turn.
type clientReads struct {
	turns  chan struct{} // holds a value for each read in progress, at most half of all
	latest map[string]*read
	count  int
	epoch  int // how often the client was dropped
}

// read is a read of the store for all callers that join it.
type read struct {
	of       *clientReads
	key      key // without an entity, the read is of a page
	flight   singleflight.Group[*entry]
	users    int           // its callers, and itself while it is in progress
	unwanted chan struct{} // closed when there are none
	inStore  bool          // the store was called
	since    instant       // before the store was called or, until then, when the read was made
	epoch    int           // in which the store was called
}

// noEpoch is the epoch of a read that started while a change was made.
const noEpoch = -1

// do reads the store, or waits for another caller's read that is recent enough for a call
// of the given instant. It returns nil for a page of a client that is too large.
func (rs *reads) do(ctx context.Context, k key, called instant) (*entry, error) {
	r, err := rs.join(k, called)
	if err != nil {
		return nil, err
	}
	defer rs.leave(r)
	e, err := r.flight.Do(ctx, "", rs.timeout, func(ctx context.Context) (*entry, error) {
		e, err := rs.fetch(ctx, r)
		if err != nil && !errors.Is(err, errUnwanted) {
			rs.entries.fail(k.client, rs.clock.now())
		}
		return e, err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("cache: resolve: %w", ctx.Err())
	case err != nil && rs.ctx.Err() != nil:
		err = ErrClosed
	}
	return e, err
}

// fetch waits for its turn, reads the store and keeps the result.
func (rs *reads) fetch(ctx context.Context, r *read) (*entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(rs.ctx, cancel)()
	for _, turns := range []chan struct{}{r.of.turns, rs.turns} {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-r.unwanted:
			return nil, errUnwanted
		case <-ctx.Done():
			return nil, fmt.Errorf("cache: wait for a read of the store: %w", ctx.Err())
		}
	}
	if err := rs.start(r, rs.clock.now()); err != nil {
		return nil, err
	}
	defer rs.leave(r)
	rs.figures.reads.Add(1)
	e, err := rs.readStore(ctx, r.key)
	if err != nil {
		rs.figures.fail(&rs.figures.failedReads, err)
		return nil, err
	}
	rs.keep(r, e)
	return e, nil
}

// readStore reads an entity or a page.
func (rs *reads) readStore(ctx context.Context, k key) (*entry, error) {
	if k.entity != "" {
		hook, err := rs.store.Resolve(ctx, k.client, k.entity)
		return &entry{webhook: hook}, err
	}
	page, err := rs.lister.List(ctx, k.client, "", pageLimit)
	if page.Next != "" || errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	e := &entry{webhook: page.Base}
	if len(page.Overrides) > 0 {
		e.overrides = make(map[string]webhookcfg.Webhook, len(page.Overrides))
	}
	for _, o := range page.Overrides {
		e.overrides[o.Entity] = o.Webhook
	}
	return e, err
}

// join returns a read for a caller, which must leave it: a new one, unless there is one
// that the caller can join.
func (rs *reads) join(k key, called instant) (*read, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, ErrClosed
	}
	k.client = strings.Clone(k.client) // it may be part of a buffer of the caller
	of := rs.byClient[k.client]
	if of == nil {
		of = &clientReads{
			turns:  make(chan struct{}, (cap(rs.turns)+1)/2),
			latest: map[string]*read{},
		}
		rs.byClient[k.client] = of
	}
	r := of.latest[k.entity]
	if r == nil || r.since <= called-rs.joinable || r.inStore && r.epoch != of.epoch {
		k.entity = strings.Clone(k.entity)
		r = &read{of: of, key: k, unwanted: make(chan struct{}), since: called}
		of.latest[k.entity] = r
		of.count++
		rs.all.Add(1)
		if k.entity != "" {
			rs.entries.countRead(k.client)
		}
	}
	r.users++
	return r, nil
}

func (rs *reads) leave(r *read) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	close(r.unwanted)
	if r.of.latest[r.key.entity] == r {
		delete(r.of.latest, r.key.entity)
	}
	if r.of.count--; r.of.count == 0 {
		delete(rs.byClient, r.key.client)
	}
	rs.all.Done()
}

// start records that a read is about to call the store; it must leave the read
// afterwards, unless start returns an error.
func (rs *reads) start(r *read, now instant) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return ErrClosed
	}
	if r.users == 0 {
		return errUnwanted
	}
	r.users++
	r.inStore, r.since, r.epoch = true, now, r.of.epoch
	if rs.changing[r.key.client] > 0 {
		r.epoch = noEpoch
	}
	return nil
}

// keep keeps the result of a read, unless the client was dropped since the read started.
func (rs *reads) keep(r *read, e *entry) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.epoch != r.of.epoch {
		return
	}
	if e != nil {
		e.started = r.since
	}
	rs.entries.keep(r.key, e)
}

// apply drops the clients that changed according to a poll that started at the given
// instant.
func (rs *reads) apply(changes Changes, started instant) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if changes.Reset {
		rs.dropAll()
	}
	for _, client := range changes.Clients {
		rs.drop(client)
	}
	rs.entries.vouch(started)
}

// check drops a client unless its version, from a check that started at the given instant,
// is what it was.
func (rs *reads) check(client, version string, started instant) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.entries.check(client, version, started) {
		rs.outdate(client)
	}
}

// startChange and endChange enclose a change that is made through the Cache.
func (rs *reads) startChange(client string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.changing[client]++
	rs.drop(client)
}

func (rs *reads) endChange(client string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.changing[client]--; rs.changing[client] == 0 {
		delete(rs.changing, client)
	}
}

// close drops everything for good, and waits for the reads.
func (rs *reads) close() {
	rs.mu.Lock()
	rs.closed = true
	rs.dropAll()
	rs.mu.Unlock()
	rs.all.Wait()
}

// The rest is called with mu held.

func (rs *reads) drop(client string) {
	rs.entries.drop(client)
	rs.outdate(client)
}

func (rs *reads) dropAll() {
	rs.entries.dropAll()
	for _, of := range rs.byClient {
		of.epoch++
	}
}

// outdate makes a client's reads in progress read for nobody but their callers.
func (rs *reads) outdate(client string) {
	if of := rs.byClient[client]; of != nil {
		of.epoch++
	}
}
