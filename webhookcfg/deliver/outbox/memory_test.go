package outbox

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// memory is a database with the queue. It's the model of the tables: each call is one step,
// and takes a time.
type memory struct {
	takes time.Duration // each call
	lag   time.Duration // from when a read sees the tables to when its rows arrive

	mu        sync.Mutex
	messages  map[int64]*stored
	spots     map[spot]map[int64]*stored // the same, as the index has them
	seq       int64
	lines     map[string]*storedLine
	processes map[int64]int64 // their last signs of life
	calls     map[string]int
	blind     bool // reads find nothing, as if what they look for were hidden from them

	again map[string][]time.Duration // how long each step of a client takes that sends many again
	steps []time.Time                // when they began
}

type stored struct {
	row
	client   string
	state    int
	enqueued time.Time
	due      time.Time
	reason   string
}

// at returns where a notification is in its index.
func (m *stored) at() position {
	p := m.position
	if p.due = 0; !m.due.IsZero() {
		p.due = m.due.UnixMicro()
	}
	return p
}

// spot is where an index finds notifications.
type spot struct {
	client string
	state  int
}

// put gives a notification a state.
func (db *memory) put(m *stored, state int) {
	delete(db.spots[spot{m.client, m.state}], m.seq)
	m.state = state
	at := spot{m.client, state}
	if db.spots[at] == nil {
		db.spots[at] = make(map[int64]*stored)
	}
	db.spots[at][m.seq] = m
}

type storedLine struct {
	owner  int64
	due    time.Time // zero: now
	woken  bool
	pauses []pause
}

func newMemory() *memory {
	return &memory{
		takes: time.Millisecond, messages: make(map[int64]*stored), spots: make(map[spot]map[int64]*stored), lines: make(map[string]*storedLine),
		processes: make(map[int64]int64), calls: make(map[string]int),
	}
}

// counted returns how often each call was made.
func (db *memory) counted() map[string]int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return maps.Clone(db.calls)
}

// enqueue is a committed Enqueue.
func (db *memory) enqueue(client, entity, id string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.commit(db.number(), client, entity, id)
}

// number takes the number of a notification, as an INSERT does.
func (db *memory) number() int64 { db.seq++; return db.seq }

func (db *memory) commit(seq int64, client, entity, id string) {
	s := &stored{client: client, enqueued: time.Now()}
	s.seq, s.entity, s.id, s.body = seq, entity, id, []byte("{}")
	db.messages[seq] = s
	db.put(s, stateFresh)
}

// sendAgain makes some of a client's notifications fresh again, and returns them.
func (db *memory) sendAgain(client string, isChosen func() bool) (ids []string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, seq := range slices.Sorted(maps.Keys(db.messages)) {
		m := db.messages[seq]
		if m.client != client || m.state < stateWaiting || m.state == stateWaiting && m.due.IsZero() || !isChosen() {
			continue
		}
		db.put(m, stateFresh)
		m.due, m.attempts, m.since = time.Time{}, 0, 0
		ids = append(ids, m.id)
	}
	return ids
}

// erase removes an entity's notifications. It returns when the last one that waited for a retry
// was due.
func (db *memory) erase(client, entity string) (due time.Time) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for seq, m := range db.messages {
		if m.client == client && m.entity == entity {
			delete(db.messages, seq)
			delete(db.spots[spot{client, m.state}], seq)
			if m.state == stateWaiting && m.due.After(due) {
				due = m.due
			}
		}
	}
	return due
}

// ownerOf returns the process that has a client's line.
func (db *memory) ownerOf(client string) int64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	if l := db.lines[client]; l != nil {
		return l.owner
	}
	return 0
}

// session is a process's access to the database. Once it's cut, nothing gets through.
type session struct {
	*memory
	cut  bool
	fail func(call string) error // if set, called for each call
	hang func(call string) bool  // if set, which calls don't return until their context ends
}

var errCut = errors.New("connection refused")

func (s *session) call(ctx context.Context, name string) (unlock func(), err error) {
	if !wait(ctx, s.takes) {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	s.calls[name]++
	if s.hang != nil && s.hang(name) {
		s.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	err = ctx.Err()
	if s.cut {
		err = errCut
	}
	if err == nil && s.fail != nil {
		err = s.fail(name)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

func (s *session) check(context.Context) error           { return nil }
func (s *session) sweep(context.Context, *Options) error { return nil }
func (s *session) resending(context.Context, string) (clients []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.again)), nil
}

func (s *session) resendSome(ctx context.Context, client string) error {
	s.mu.Lock()
	step := s.again[client][0]
	if s.again[client] = s.again[client][1:]; len(s.again[client]) == 0 {
		delete(s.again, client)
	}
	s.steps = append(s.steps, time.Now())
	s.mu.Unlock()
	wait(ctx, step)
	return nil
}

func (s *session) join(ctx context.Context, me *identity, lease time.Duration, _ string) error {
	unlock, err := s.call(ctx, "join")
	if err != nil {
		return err
	}
	defer unlock()
	s.processes[me.id] = 0
	return nil
}

func (s *session) extend(me *identity) error {
	beat, stored := me.beat()
	if last, ok := s.processes[me.id]; !ok || last < stored {
		return errLost
	}
	s.processes[me.id] = beat
	me.hasStored(beat)
	return nil
}

func (s *session) renew(ctx context.Context, me *identity, _ time.Duration) error {
	unlock, err := s.call(ctx, "renew")
	if err != nil {
		return err
	}
	defer unlock()
	return s.extend(me)
}

func (s *session) leave(ctx context.Context, me *identity) error {
	unlock, err := s.call(ctx, "leave")
	if err != nil {
		return err
	}
	defer unlock()
	s.drop(me.id)
	return nil
}

func (s *session) drop(me int64) {
	delete(s.processes, me)
	for _, l := range s.lines {
		if l.owner == me {
			l.owner, l.due, l.woken = 0, time.Time{}, true
		}
	}
}

func (s *session) bury(ctx context.Context, dead map[int64]int64) (n int, err error) {
	unlock, err := s.call(ctx, "bury")
	if err != nil {
		return 0, err
	}
	defer unlock()
	for id, beat := range dead {
		if last, ok := s.processes[id]; ok && last == beat {
			s.drop(id)
			n++
		}
	}
	return n, nil
}

func (s *session) poll(ctx context.Context, me int64, after string, limit int) (f found, err error) {
	unlock, err := s.call(ctx, "poll")
	if err != nil {
		return f, err
	}
	defer unlock()
	now := time.Now()
	for client, l := range s.lines {
		switch {
		case l.due.After(now):
		case l.owner == 0:
			f.due = append(f.due, client)
		case l.owner == me:
			f.woken = append(f.woken, client)
		}
	}
	slices.SortFunc(f.due, func(a, b string) int { return s.lines[a].due.Compare(s.lines[b].due) })
	f.due = f.due[:min(len(f.due), limit)]
	fresh := make(map[string]bool)
	for at, messages := range s.spots {
		if at.state == stateFresh && at.client > after && len(messages) > 0 {
			fresh[at.client] = true
		}
	}
	all := slices.Sorted(maps.Keys(fresh))
	all = all[:min(len(all), limit)]
	for _, client := range all {
		if l := s.lines[client]; l == nil || l.owner == 0 && l.due.After(now) || l.owner == me {
			f.fresh = append(f.fresh, client)
		}
	}
	if len(all) == limit {
		f.next = all[limit-1]
	}
	f.others = maps.Clone(s.processes)
	delete(f.others, me)
	return f, nil
}

func (s *session) claim(ctx context.Context, me *identity, _ time.Duration, clients, waiting []string) (all []claimed, err error) {
	unlock, err := s.call(ctx, "claim")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.extend(me); err != nil {
		return nil, err
	}
	isWaiting := make(map[string]bool)
	for _, client := range waiting {
		isWaiting[client] = true
	}
	for _, client := range slices.Concat(clients, waiting) {
		l := s.lines[client]
		if l == nil {
			l = &storedLine{due: time.Now().Add(10_000 * time.Hour)}
			s.lines[client] = l
		}
		if isWaiting[client] {
			if l.owner == 0 && l.due.After(time.Now()) {
				l.due = time.Now()
			}
			continue
		}
		if l.owner != 0 && l.owner != me.id {
			continue
		}
		c := claimed{client: client, left: -10_000 * time.Hour, woken: l.woken || l.owner == me.id, pauses: slices.Clone(l.pauses)}
		if !l.due.IsZero() && l.owner == 0 {
			c.left = time.Until(l.due)
		}
		all = append(all, c)
		l.owner, l.due, l.woken = me.id, time.Now().Add(10_000*time.Hour), false
	}
	return all, nil
}

func (s *session) rows(client string, state int, from position, limit int) (all []row) {
	if s.blind {
		return nil
	}
	var found []*stored // the rows of a backlog are large, and few are read at a time
	for _, m := range s.spots[spot{client, state}] {
		if m.at().compare(from) >= 0 {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *stored) int { return a.at().compare(b.at()) })
	for _, m := range found[:min(len(found), limit)] {
		r := m.row
		if r.position = m.at(); !m.due.IsZero() {
			r.left = time.Until(m.due)
		}
		r.age = time.Since(m.enqueued)
		all = append(all, r)
	}
	return all
}

func (s *session) fresh(ctx context.Context, client string, limit int) ([]row, error) {
	unlock, err := s.call(ctx, "fresh")
	if err != nil {
		return nil, err
	}
	rows := s.rows(client, stateFresh, position{}, limit)
	unlock()
	wait(ctx, s.lag)
	return rows, nil
}

func (s *session) waiting(ctx context.Context, client string, from position, limit int) ([]row, error) {
	unlock, err := s.call(ctx, "waiting")
	if err != nil {
		return nil, err
	}
	rows := s.rows(client, stateWaiting, from, limit)
	unlock()
	wait(ctx, s.lag)
	return rows, nil
}

func (s *session) body(ctx context.Context, seq, _ int64) ([]byte, error) {
	unlock, err := s.call(ctx, "body")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m := s.messages[seq]; m != nil {
		return m.body, nil
	}
	return nil, nil
}

func (s *session) write(ctx context.Context, me *identity, _ time.Duration, b batch) error {
	unlock, err := s.call(ctx, "write")
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.extend(me); err != nil {
		return err
	}
	now := time.Now()
	once := make(map[int64]bool)
	for _, o := range b.outcomes {
		if once[o.Seq] {
			panic("two outcomes of a notification in one statement: which one counts isn't defined")
		}
		once[o.Seq] = true
		m := s.messages[o.Seq]
		if m == nil || m.state > stateWaiting || o.isSeen() && m.state != stateFresh {
			continue
		}
		if o.Attempts > m.attempts {
			m.since = o.Since
		}
		s.put(m, o.State)
		m.attempts, m.reason = o.Attempts, cmp.Or(o.Reason, m.reason)
		m.due = time.Time{}
		if o.State != stateWaiting || o.Delay > 0 {
			m.due = now.Add(time.Duration(o.Delay) * time.Microsecond)
		}
	}
	for _, u := range b.lines {
		l := s.lines[u.client]
		if l == nil || l.owner != me.id {
			continue
		}
		switch {
		case u.giveBack:
			l.owner, l.pauses = 0, u.pauses
			if l.due.IsZero() {
				l.due = now
			} else {
				l.due = now.Add(u.due)
			}
		case u.awake:
			l.due, l.woken = now.Add(10_000*time.Hour), false
		default:
			l.pauses = u.pauses
			s.calls["pauses"]++
		}
	}
	return nil
}

func (s *session) wake(ctx context.Context, client string) error {
	unlock, err := s.call(ctx, "wake")
	if err != nil {
		return err
	}
	defer unlock()
	if l := s.lines[client]; l != nil {
		l.woken = true
		if l.owner != 0 {
			l.due = time.Time{}
		} else if now := time.Now(); l.due.After(now) {
			l.due = now
		}
	}
	return nil
}

// in returns how many notifications of a client are in a state.
func (db *memory) in(client string, state int) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return len(db.spots[spot{client, state}])
}

// waitingNow returns how many notifications haven't ended.
func (db *memory) waitingNow() (n int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, m := range db.messages {
		if m.state <= stateWaiting {
			n++
		}
	}
	return n
}
