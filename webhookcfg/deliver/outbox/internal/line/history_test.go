package line

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	traced = flag.Int("traced", 60, "how many steps of a failed history to show")
	only   = flag.Int("only", -1, "run just this history")
)

var histories = flag.Int("histories", 20, "how many random histories of a line to run")

// stored is a notification in the tables of a history.
type stored struct {
	seq      int64
	entity   string
	group    Group
	due      time.Time
	enqueued time.Time
	resent   int64
	attempts int
	ended    bool
	sent     int // attempts at all
}

// history is a client with its tables, its webhooks and their receivers, in a time of its own.
type history struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	now    time.Time
	line   *Line
	limits Limits

	rows      []*stored
	open      []*stored // those that haven't ended
	base      Hook
	overrides map[string]Hook
	old       map[string]Hook // what a late copy returns
	lag       time.Duration
	setting   int64
	down      map[string]Effect // hosts and URLs that fail
	broken    map[string]bool   // entities that can't be looked up
	pauses    map[string]Pause  // that were saved
	marks     map[string]bool   // entities whose change isn't dealt with
	takes     time.Duration
	slow      time.Duration // how long hosts take whose names start with slow
	lingers   time.Duration // how long those that were tried before take, unless it's zero
	cutOff    bool          // no question is answered
	refuses   string        // how entities start for which our side fails
	asks      time.Duration // the pause that receivers ask for
	steady    bool          // questions and writes take a moment, always the same

	events    []event
	unwritten []Write
	writing   bool
	failAsks  bool
	failing   bool // something has failed, so the order isn't promised
	first     map[string]int64

	steps, questions, happened, attempts, read, written int
	trace                                               []string
}

type event struct {
	at time.Time
	do func()
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 5)), now: time.Unix(1_800_000_000, 0),
		limits: Limits{PerClient: 6, PerHost: 2, MaxPause: 2 * time.Minute}, overrides: make(map[string]Hook), old: make(map[string]Hook),
		slow: time.Second, down: make(map[string]Effect), broken: make(map[string]bool), marks: make(map[string]bool), pauses: make(map[string]Pause), takes: 20 * time.Millisecond, first: make(map[string]int64),
	}
	h.base = h.hook("a", 1, false)
	h.claim()
	return h
}

func (h *history) claim() {
	h.line = New(h.limits, h.random)
	if !h.steady && h.seed%2 == 1 {
		h.line.maxRests = 2
	}
	for _, entity := range slices.Sorted(maps.Keys(h.pauses)) {
		if p := h.pauses[entity]; !p.IsOver(h.now) {
			h.line.Restore(p)
		}
	}
	h.line.SetAlone(len(h.overrides) == 0 && (h.steady || h.random.IntN(4) > 0))
}

// restart lets another process go on.
func (h *history) restart() {
	h.unwritten, h.writing = nil, false
	h.claim()
	for _, entity := range slices.Sorted(maps.Keys(h.marks)) {
		h.line.Changed(entity, h.now)
	}
}

func (h *history) hook(host string, target uint64, isOverride bool) Hook {
	h.setting += 1 + int64(h.random.IntN(3))
	return Hook{Override: isOverride, Setting: 1000 + h.setting, Host: host, Target: target}
}

func (h *history) at(after time.Duration, do func()) {
	h.events = append(h.events, event{h.now.Add(after), do})
	slices.SortStableFunc(h.events, func(a, b event) int { return a.at.Compare(b.at) })
}

func (h *history) actual(entity string) Hook {
	if o, ok := h.overrides[entity]; ok {
		return o
	}
	return h.base
}

// lookUp returns the webhook of an entity as the copy has it.
func (h *history) lookUp(entity string) (Hook, bool) {
	if h.broken[entity] {
		return Hook{}, false
	}
	if o, ok := h.old[entity]; ok {
		return o, true
	}
	return h.actual(entity), true
}

func (h *history) enqueue(entity string, n int) {
	for range n {
		s := &stored{seq: int64(len(h.rows) + 1), entity: entity, enqueued: h.now}
		h.rows, h.open = append(h.rows, s), append(h.open, s)
	}
	h.line.News()
}

// set changes the webhook of an entity, or the base and all.
func (h *history) set(entity string, change func()) {
	h.failing = true
	was := make(map[string]Hook)
	for _, e := range entities {
		was[e] = h.actual(e)
	}
	change()
	for _, e := range entities {
		if h.lag > 0 && (entity == "" || entity == e) {
			h.old[e] = was[e]
			h.at(h.lag, func() { delete(h.old, e) })
		}
	}
	if entity != "" {
		h.marks[entity] = true
	}
	h.line.Changed(entity, h.now)
	h.line.SetAlone(len(h.overrides) == 0)
}

var entities = []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"}

func (h *history) answer(q *Question) (a Answer) {
	find := func(want func(s *stored) bool) []*stored {
		found := make([]*stored, 0, 64)
		for _, s := range h.open {
			if want(s) {
				found = append(found, s)
			}
		}
		slices.SortFunc(found, func(a, b *stored) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq)) })
		return found
	}
	a.Hooks = make(map[string]Hook)
	see := func(entity string) {
		if hook, ok := h.lookUp(entity); ok {
			a.Hooks[entity] = hook
		}
	}
	if q.IsListing {
		seen := make(map[Group]bool)
		var ids []Group
		for _, s := range find(func(s *stored) bool { return s.group > q.After }) {
			if !seen[s.group] {
				seen[s.group] = true
				ids = append(ids, s.group)
			}
		}
		slices.Sort(ids)
		if len(ids) > 3 {
			ids, a.IsMore = ids[:3], true
		}
		for _, id := range ids {
			first := find(func(s *stored) bool { return s.group == id })[0]
			see(first.entity)
			a.Groups = append(a.Groups, Listed{id, first.entity, first.due.Sub(h.now)})
		}
		return a
	}
	if len(q.Without) > h.line.maxRests+maxRests {
		h.fatal("%d entities are left out", len(q.Without))
	}
	held, without := make(map[int64]bool), make(map[string]bool)
	for _, seq := range q.Held {
		held[seq] = true
	}
	for _, entity := range q.Without {
		without[entity] = true
	}
	for _, p := range q.Parts {
		var f Found
		rows := find(func(s *stored) bool {
			if held[s.seq] {
				return false
			}
			if p.Entity != "" {
				return s.entity == p.Entity && s.group != p.Group && s.group != p.Group|triedBit
			}
			return s.group == p.Group && !without[s.entity] && (p.All || !s.due.After(h.now))
		})
		for _, s := range rows[:min(len(rows), p.Limit)] {
			h.read++
			f.Rows = append(f.Rows, Row{Seq: s.seq, Resent: s.resent, Entity: s.entity, Group: s.group, Attempts: s.attempts, Wait: max(s.due.Sub(h.now), 0), Waited: h.now.Sub(s.enqueued)})
			see(s.entity)
		}
		if later := find(func(s *stored) bool { return s.group == p.Group && s.due.After(h.now) }); len(later) > 0 && !p.All && p.Entity == "" {
			f.Next = later[0].due.Sub(h.now)
		}
		a.Parts = append(a.Parts, f)
	}
	return a
}

// work does all that can be done now.
func (h *history) work() {
	for n := 0; ; n++ {
		if n > 100_000 {
			h.fatal("the line doesn't come to rest")
		}
		if h.steps++; h.steps%8 == 0 && !h.steady {
			h.law()
		}
		did := false
		for _, entity := range h.line.Looks(h.now) {
			did = true
			if hook, ok := h.lookUp(entity); ok || entity == "" {
				if entity == "" {
					hook = h.base
				}
				h.line.Looked(entity, hook, h.now)
			} else {
				h.line.LookFailed(entity, h.now)
			}
		}
		did = h.start() || did
		if q := h.line.Ask(h.now); q != nil {
			did = true
			h.questions++
			h.log("ask %+v", *q)
			switch {
			case h.cutOff, h.failAsks && h.random.IntN(3) == 0:
				h.line.Failed(q, h.now)
			case !h.steady && h.random.IntN(3) == 0: // read now, and known later
				a := h.answer(q)
				l := h.line
				h.at(time.Duration(1+h.random.IntN(20))*time.Millisecond, func() {
					if l == h.line {
						h.write(l.Answer(q, a, h.now))
					}
				})
			default:
				h.write(h.line.Answer(q, h.answer(q), h.now))
			}
		}
		did = h.start() || did
		h.flush()
		left := h.line.Ungathered()
		maps.DeleteFunc(h.marks, func(entity string, _ bool) bool { return !left[entity] })
		for _, p := range h.line.Unsaved() {
			h.pauses[p.Entity] = p
		}
		if !did {
			h.law()
			h.settled()
			return
		}
	}
}

// start begins all attempts that may start, and reports whether there was one.
func (h *history) start() (did bool) {
	for r := h.line.Start(h.now); r != nil; r = h.line.Start(h.now) {
		did = true
		h.begin(r)
	}
	return did
}

func (h *history) begin(r *Row) {
	hook, ok := h.lookUp(r.Entity)
	s := h.rows[r.Seq-1]
	h.log("start %d %s to %+v, group %d", r.Seq, r.Entity, hook, r.Group)
	if s.ended {
		h.fatal("%d has ended, and starts", r.Seq)
	}
	if !ok {
		h.write(h.line.End(r, Result{IsOurs: true, Start: h.now}, h.now))
		return
	}
	if !h.steady && h.random.IntN(30) == 0 { // the lease has ended meanwhile, for a moment
		h.write(h.line.Cancel(r, h.now))
		h.at(time.Millisecond, func() {})
		return
	}
	if h.refuses != "" && strings.HasPrefix(r.Entity, h.refuses) {
		h.write(h.line.End(r, Result{IsOurs: true, Start: h.now}, h.now))
		return
	}
	ok, writes := h.line.Confirm(r, hook, h.now)
	h.write(writes)
	if !ok {
		return
	}
	h.attempts++
	s.sent++
	h.limit(r, hook)
	if !h.failing && h.first[r.Entity] > r.Seq {
		h.fatal("%d of %s starts after %d", r.Seq, r.Entity, h.first[r.Entity])
	}
	h.first[r.Entity] = max(h.first[r.Entity], r.Seq)
	start, l := h.now, h.line
	takes := h.takes
	if h.down[hook.Host] == NoConnection || strings.HasPrefix(hook.Host, "slow") {
		takes = h.slow
	}
	if r.Attempts > 0 {
		takes = cmp.Or(h.lingers, takes)
	}
	h.at(takes, func() {
		if l != h.line {
			return
		}
		result := Result{Effect: Success, Start: start, HasEnded: true}
		effect := cmp.Or(h.down[hook.Host], h.down[fmt.Sprint(hook.Host, "/", hook.Target)])
		if h.asks > 0 {
			effect = Failure
			result.Pause = h.asks
		}
		if effect != 0 {
			result.Effect = effect
			h.failing = true
			if effect == Failure && !h.steady && h.random.IntN(3) == 0 {
				result.Pause = time.Duration(h.random.IntN(20)) * time.Second
			}
			result.Delay = schedule[min(r.Attempts, len(schedule)-1)]
			result.HasEnded = r.Attempts >= 8
		}
		writes := l.End(r, result, h.now)
		h.write(writes)
	})
}

var schedule = []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute}

// limit checks that an attempt that starts is within the limits, and that its webhook isn't paused.
func (h *history) limit(r *Row, hook Hook) {
	l, w := h.line, r.of
	of := 0
	for _, other := range l.rows {
		if other.Entity == r.Entity && other.state == started {
			of++
		}
	}
	switch {
	case of != 1:
		h.fatal("%d attempts of %s are under way", of, r.Entity)
	case l.underWay > l.limits.PerClient, hook.Host != "" && w.host.underWay > l.limits.PerHost:
		h.fatal("%d attempts are under way, %d of them at %s", l.underWay, w.host.underWay, hook.Host)
	case w.pause.IsFailing() && w.underWay > 1 || w.host.pause.IsFailing() && w.host.underWay > 1:
		h.fatal("%d attempts are under way at %s, which fails", w.underWay, hook.Host)
	case w.isPaused(h.now):
		h.fatal("%s is paused for %v", hook.Host, w.opens().Sub(h.now))
	}
}

func (h *history) write(writes []Write) { h.unwritten = append(h.unwritten, writes...) }

// flush writes after a while.
func (h *history) flush() {
	if h.writing || len(h.unwritten) == 0 {
		return
	}
	h.writing = true
	l := h.line
	takes := time.Duration(h.random.IntN(60)) * time.Millisecond
	if h.steady {
		takes = 20 * time.Millisecond
	}
	h.at(takes, func() {
		if l != h.line {
			return
		}
		h.writing = false
		writes := h.unwritten
		h.unwritten = nil
		for _, w := range writes {
			s := h.rows[w.Row.Seq-1]
			h.written++
			h.log("write %d %+v", s.seq, w)
			if s.resent != w.Row.Resent || s.ended {
				continue
			}
			if s.ended = w.HasEnded; !s.ended {
				s.group, s.due = w.Group, h.now.Add(w.Delay)
				if w.Delay > 0 && w.Group.IsTried() && !w.Group.isUnsorted() {
					s.attempts++
				}
			}
		}
		h.open = slices.DeleteFunc(h.open, func(s *stored) bool { return s.ended })
		l.Written(writes, h.now)
		h.happened++
	})
}

// pass lets time pass.
func (h *history) pass(d time.Duration) {
	end := h.now.Add(d)
	for {
		h.work()
		next := h.line.Next()
		isEvent := false
		if len(h.events) > 0 && (next.IsZero() || !h.events[0].at.After(next)) {
			next, isEvent = h.events[0].at, true
		}
		if next.IsZero() || next.After(end) {
			h.now = end
			return
		}
		if !next.After(h.now) && !isEvent {
			h.fatal("something is to be done at %v, and isn't", next)
		}
		if next.After(h.now) {
			h.now = next
		}
		if isEvent {
			e := h.events[0]
			h.events = h.events[1:]
			e.do()
		}
		h.happened++
	}
}

// law checks that each waiting notification is in the window, or found again.
func (h *history) law() {
	l := h.line
	asks := make(map[Group]bool)
	asksEntity := make(map[string]bool)
	lists := l.listing
	if l.asked != nil {
		lists = lists || l.asked.IsListing
		for _, p := range l.asked.Parts {
			if p.Entity == "" {
				asks[p.Group] = true
			}
			asksEntity[p.Entity] = true
		}
	}
	looks := make(map[string]bool)
	for _, k := range l.looks {
		looks[k.entity] = true
	}
	for _, s := range h.open {
		if l.rows[s.seq] != nil || asks[s.group] || asksEntity[s.entity] || looks[s.entity] {
			continue
		}
		if g := l.groups[s.group]; g != nil && (g.isDue(h.now) || !g.next.IsZero() && !g.isAll() && !g.next.After(s.due.Add(100*time.Millisecond))) {
			continue
		}
		if !s.group.isUnsorted() && lists {
			continue
		}
		if e := l.entities[s.entity]; e != nil && e.isOut() && slices.Contains(e.outside, s.group) {
			continue
		}
		if slices.Contains(l.current(s.entity).gathering, s.entity) {
			continue
		}
		g := l.groups[s.group]
		h.fatal("%d of %s, in group %d and due in %v, isn't found again: %+v", s.seq, s.entity, s.group, s.due.Sub(h.now), g)
	}
}

// settled checks that nothing waits that could go, once there's nothing left to do.
func (h *history) settled() {
	l := h.line
	if l.asked != nil || len(h.unwritten) > 0 || l.rest.After(h.now) || l.underWay >= l.limits.PerClient {
		return
	}
	for _, s := range h.open {
		if h.broken[s.entity] || len(h.old) > 0 {
			continue
		}
		hook := h.actual(s.entity)
		w := l.current(s.entity)
		if w.setting != 0 && w.setting != hook.Setting {
			continue // it isn't known yet
		}
		own := groupOf(hook.Setting, hook.Override, s.group.IsTried())
		if s.due.After(h.now.Add(-100*time.Millisecond)) && s.group == own {
			continue
		}
		if s.due.After(h.now.Add(-100*time.Millisecond)) && s.group.isUnsorted() && s.group.IsTried() {
			continue
		}
		if w.isPaused(h.now) || w.isFailing() || !w.works() && l.unproven >= l.limits.PerClient/2 || w.host.underWay >= l.limits.PerHost {
			continue
		}
		if e := l.entities[s.entity]; e != nil && (e.isRunning || !e.rest.IsZero()) {
			continue
		}
		if slices.ContainsFunc(l.looks, func(k look) bool { return k.entity == "" || k.entity == s.entity }) {
			continue
		}
		h.fatal("%d of %s could go, and doesn't: group %d (own %d), due in %v, held %v; webhook %+v; host %+v, waits %v %v", s.seq, s.entity, s.group, own, s.due.Sub(h.now), l.rows[s.seq], w, w.host, slices.Contains(w.host.waiting, w), slices.Contains(l.waiting, w))
	}
}

// forgotten checks that nothing is left in memory of what has ended, but some overrides that work.
func (h *history) forgotten(overrides int) {
	h.t.Helper()
	l := h.line
	if len(h.open) > 0 || len(l.rows) > 0 || len(l.entities) > 0 || len(l.overrides) > overrides || len(l.hosts) > 2+overrides || len(l.groups) > 2 ||
		len(l.asks)+len(l.turns)+len(l.waiting)+len(l.rests)+len(l.looks)+len(l.gathered) > 0 || l.leaving+l.held+l.underWay+l.unproven != 0 {
		h.fatal("%d wait; rows %d, entities %d, overrides %d, hosts %d, groups %d, asks %d, turns %d, waiting %d, rests %d, looks %d, gathered %d; leaving %d, held %d, under way %d, unproven %d",
			len(h.open), len(l.rows), len(l.entities), len(l.overrides), len(l.hosts), len(l.groups), len(l.asks), len(l.turns), len(l.waiting),
			len(l.rests), len(l.looks), len(l.gathered), l.leaving, l.held, l.underWay, l.unproven)
	}
	for name, at := range l.hosts {
		if at.held != 0 || at.underWay != 0 || at.tried != 0 || at.fresh != 0 || len(at.waiting) > 0 {
			h.fatal("host %q has %+v", name, *at)
		}
	}
	for _, w := range append(slices.Collect(maps.Values(l.overrides)), l.base) {
		if w.held != 0 || w.heldTried != 0 || w.underWay != 0 || w.leaving != 0 || w.moving != 0 || len(w.fresh)+len(w.tried) > 0 {
			h.fatal("webhook %q has %+v", w.entity, *w)
		}
	}
}

func (h *history) log(format string, args ...any) {
	if *only < 0 {
		return
	}
	h.trace = append(h.trace, fmt.Sprintf("%v ", h.now.Sub(time.Unix(1_800_000_000, 0)))+fmt.Sprintf(format, args...))
}

func (h *history) fatal(format string, args ...any) {
	h.t.Helper()
	for _, line := range h.trace[max(0, len(h.trace)-*traced):] {
		h.t.Log(line)
	}
	h.t.Fatalf("history %d, %v: "+format, append([]any{h.seed, h.now.Sub(time.Unix(1_800_000_000, 0))}, args...)...)
}

// TestHistories runs random histories of a line. After each step, each notification that waits is in
// the window or found again. Whenever the line has nothing to do, nothing waits that could go.
func TestHistories(t *testing.T) {
	t.Parallel()
	var questions, attempts, happened int
	for seed := range *histories {
		if *only >= 0 && seed != *only {
			continue
		}
		h := newHistory(t, uint64(seed))
		for range 60 {
			h.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		clear(h.down)
		clear(h.broken)
		h.failAsks = false
		for n := 0; h.waiting() > 0; n++ {
			h.pass(10 * time.Minute)
			if n > 50 {
				h.fatal("seed %d: %d still wait", seed, h.waiting())
			}
		}
		h.pass(time.Hour)
		h.forgotten(len(entities))
		if *only >= 0 {
			t.Log(strings.Join(h.trace, "\n"))
		}
		questions, attempts, happened = questions+h.questions, attempts+h.attempts, happened+h.happened
	}
	t.Logf("%d attempts, %d questions, %d events", attempts, questions, happened)
}

func (h *history) waiting() int { return len(h.open) }

// step does something at random.
func (h *history) step() {
	hosts := []string{"a", "b", "c", "slow"}
	entity := entities[h.random.IntN(len(entities))]
	host, target := hosts[h.random.IntN(len(hosts))], uint64(1+h.random.IntN(2))
	what := h.random.IntN(18)
	h.log("STEP %d %s %s/%d", what, entity, host, target)
	switch what {
	case 0:
		h.set(entity, func() { h.overrides[entity] = h.hook(host, target, true) })
	case 1:
		h.set("", func() { clear(h.overrides); h.base = h.hook(host, target, false) })
	case 2: // the same again
		if o, ok := h.overrides[entity]; ok {
			h.set(entity, func() { h.overrides[entity] = h.hook(o.Host, o.Target, true) })
		} else {
			h.set("", func() { clear(h.overrides); h.base = h.hook(h.base.Host, h.base.Target, false) })
		}
	case 3:
		h.set(entity, func() { delete(h.overrides, entity) })
	case 4, 5:
		h.down[host] = []Effect{0, Failure, NoConnection}[h.random.IntN(3)]
	case 6, 7:
		h.down[fmt.Sprint(host, "/", target)] = []Effect{0, Failure}[h.random.IntN(2)]
	case 8: // sent again
		h.failing = true
		n := 0
		for _, i := range h.random.Perm(len(h.rows)) {
			if s := h.rows[i]; (s.ended || s.due.After(h.now)) && n < 5 {
				n++
				if s.ended {
					h.open = append(h.open, s)
				}
				s.ended, s.group, s.due, s.attempts = false, Again, h.now, 0
				s.resent = h.now.UnixMicro() + int64(h.random.IntN(1000))
			}
		}
		h.line.Resent()
	case 9:
		h.failing = true
		h.restart()
	case 10:
		h.failing = true
		h.broken[entity] = !h.broken[entity]
	case 11:
		h.failing = true
		h.failAsks = !h.failAsks
	case 17: // for a moment, a late copy doesn't have the override
		if _, ok := h.overrides[entity]; ok {
			h.failing = true
			h.old[entity] = h.base
			h.line.Looked(entity, h.base, h.now)
			h.at(time.Duration(h.random.IntN(3000))*time.Millisecond, func() {
				delete(h.old, entity)
				h.line.Looked(entity, h.actual(entity), h.now)
			})
		}
	case 12:
		h.lag = time.Duration(h.random.IntN(2)*h.random.IntN(14)) * time.Second
	default:
		for range 1 + h.random.IntN(4) {
			h.enqueue(entities[h.random.IntN(len(entities))], 1<<h.random.IntN(7))
		}
	}
	h.pass(time.Duration(h.random.IntN(3000)) * time.Millisecond)
	if h.random.IntN(10) == 0 {
		h.pass(time.Duration(h.random.IntN(600)) * time.Second)
	}
}
