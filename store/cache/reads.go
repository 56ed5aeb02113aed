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

// readTimeout limits a read of the store. Callers share it, so none of them can end it.
const readTimeout = 20 * time.Second

var errUnwanted = errors.New("cache: no caller waits for the read")

// reads are the reads of the store that are in progress or wait for their turn. Their results
// go to entries. A change drops a client from both.
//
// This is why no result is older than the bound. Take a change c that the result of a Resolve
// lacks. The result comes from a read of an entity or a page, and the read started before c
// was visible in the store. There are three ways to know that c isn't too old:
//
//   - A read that lacks c and started at t proves that c became visible after t. So
//     entry.started vouches for an entry, and read.since for every caller that shares the
//     read.
//   - Suppose c was visible at t, when a poll of a Feed started that has ended by now. That
//     poll, or an earlier one whose response came when c was visible, named the client. So
//     the client was dropped. If the read had ended before that, its result was dropped too.
//     If not, it belongs to an earlier epoch and isn't kept. So an entry that you find after
//     the poll lacks only changes later than t: entries.polled vouches for all entries.
//   - Suppose a check of a client's version started at t and returned the same version as an
//     earlier check. Then nothing changed between the two. At the end of the earlier check,
//     the client was dropped, so its entries were read later. So client.checked vouches for
//     its entries.
//
// If one of these instants is later than the start of Resolve minus the bound, the result is
// within the bound.
type reads struct {
	store    webhookcfg.Store
	lister   webhookcfg.Lister // nil if the store isn't one
	entries  *entries
	figures  *figures
	clock    clock
	timeout  time.Duration
	joinable time.Duration // callers can join a read up to this age
	turns    chan struct{} // holds a value for each read in progress
	ctx      context.Context
	all      sync.WaitGroup

	mu     sync.Mutex // for everything below
	closed bool
	// byClient has the clients with reads in progress, or waiting for their turn.
	byClient map[string]*clientReads
	// changing counts the changes in progress through the Cache, by client.
	changing map[string]int
}

// clientReads are one client's reads that are in progress or wait for their turn.
type clientReads struct {
	turns  chan struct{} // holds a value for each read in progress, at most half of all
	latest map[string]*read
	count  int
	epoch  int // how often the client was dropped
}

// read is a read of the store for all callers that join it.
type read struct {
	of       *clientReads
	key      key // without an entity, it's a read of a page
	flight   singleflight.Group[*entry]
	users    int           // its callers, and one more while it's in progress
	unwanted chan struct{} // closed when there are no users
	inStore  bool          // it has called the store
	since    instant       // when it called the store or, before that, when it was created
	epoch    int           // when it called the store
}

// noEpoch is the epoch of a read that started during a change.
const noEpoch = -1

// do reads the store, or joins another caller's read if it's recent enough for a call at the
// given instant. It returns nil for a page of a client that's too large.
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

// pageLimit is the most overrides that a client can have to be held as a whole.
const pageLimit = 256

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

// join returns a read that the caller must leave afterwards: a recent one of another caller,
// or else a new one.
func (rs *reads) join(k key, called instant) (*read, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, ErrClosed
	}
	k.client = strings.Clone(k.client) // it could be part of the caller's buffer
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

// start records that a read is about to call the store. Leave the read afterwards, unless
// start returns an error.
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

// keep keeps the result of a read, unless the client was dropped meanwhile.
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

// apply drops the clients that changed, according to a poll that started at the given
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

// check drops a client if its version is new, according to a check that started at the given
// instant.
func (rs *reads) check(client, version string, started instant) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.entries.check(client, version, started) {
		rs.outdate(client)
	}
}

// startChange and endChange surround a change that's made through the Cache.
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

// close drops everything for good, and waits for the reads to end.
func (rs *reads) close() {
	rs.mu.Lock()
	rs.closed = true
	rs.dropAll()
	rs.mu.Unlock()
	rs.all.Wait()
}

// Hold mu when you call the functions below.

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

// outdate makes sure that the results of a client's reads in progress go to their callers
// only.
func (rs *reads) outdate(client string) {
	if of := rs.byClient[client]; of != nil {
		of.epoch++
	}
}
