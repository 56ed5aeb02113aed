package enginetest

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

var histories = flag.Int("histories", 6, "how many random histories of a client to run")

// history is a client whose notifications are in a real table. It belongs into a bubble.
type history struct {
	*world
	messages *queue.Tables

	line      *line.Line
	base      line.Hook
	overrides map[string]line.Hook
	setting   int64
	changed   map[string]bool // entities whose change isn't dealt with
	pauses    map[string]line.Pause
	down      map[string]line.Effect

	statements, attempts int
	hasEnded             map[int64]bool
	events               []event
	moved                []line.Write
	outcomes             []queue.End
	writes               []line.Write
	isWriting            bool
}

type event struct {
	at time.Time
	of *line.Line // nil: whichever
	do func()
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		world: newWorld(t, seed), overrides: make(map[string]line.Hook), changed: make(map[string]bool),
		pauses: make(map[string]line.Pause), down: make(map[string]line.Effect), hasEnded: make(map[int64]bool),
	}
	if seed%2 == 1 {
		h.takes = time.Duration(h.random.IntN(20_000)) * time.Microsecond
	}
	h.messages = h.tables(h.open(1, &faults{takes: h.takes}))
	h.base = h.hook("a", false)
	h.claim()
	return h
}

func (h *history) hook(host string, isOverride bool) line.Hook {
	h.setting++
	return line.Hook{Override: isOverride, Setting: 1000 + h.setting, Host: host, Target: uint64(h.random.IntN(2))}
}

// claim lets a process go on that knows no more than what was saved.
func (h *history) claim() {
	h.line = line.New(line.Limits{PerClient: 6, PerHost: 2, MaxPause: time.Minute}, h.random)
	h.moved, h.outcomes, h.writes, h.isWriting = nil, nil, nil, false
	for _, entity := range slices.Sorted(maps.Keys(h.pauses)) {
		if p := h.pauses[entity]; !p.IsOver(time.Now()) {
			h.line.Restore(p)
		}
	}
	h.line.SetAlone(len(h.overrides) == 0)
	for _, entity := range slices.Sorted(maps.Keys(h.changed)) {
		h.line.Changed(entity, time.Now())
	}
}

func (h *history) after(d time.Duration, do func()) {
	h.events = append(h.events, event{time.Now().Add(d), h.line, do})
	slices.SortStableFunc(h.events, func(a, b event) int { return a.at.Compare(b.at) })
}

func (h *history) lookUp(entity string) line.Hook {
	if o, ok := h.overrides[entity]; ok {
		return o
	}
	return h.base
}

func (h *history) enqueue(entity string, n int) {
	h.world.enqueue("a", entity, n)
	h.line.News()
}

func (h *history) change(entity string, to func()) {
	to()
	if entity != "" {
		h.changed[entity] = true
	}
	h.line.Changed(entity, time.Now())
	h.line.SetAlone(len(h.overrides) == 0)
}

// work does what can be done now.
func (h *history) work() {
	for isBusy := true; isBusy; {
		isBusy = false
		for _, entity := range h.line.Looks(time.Now()) {
			isBusy = true
			h.line.Looked(entity, h.lookUp(entity), time.Now())
		}
		if q := h.line.Ask(time.Now()); q != nil {
			isBusy = true
			h.statements++
			if a, err := h.messages.Answer(h.t.Context(), "a", q); err != nil {
				h.t.Fatal(err)
			} else {
				h.answer(q, a)
			}
		}
		for r := h.line.Start(time.Now()); r != nil; r = h.line.Start(time.Now()) {
			isBusy = true
			h.begin(r)
		}
	}
	for _, p := range h.line.Unsaved() {
		h.pauses[p.Entity] = p
	}
	left := h.line.Ungathered()
	maps.DeleteFunc(h.changed, func(entity string, _ bool) bool { return !left[entity] })
	if !h.isWriting && len(h.writes) > 0 {
		h.isWriting = true
		h.after(time.Duration(h.random.IntN(60))*time.Millisecond, h.write)
	}
}

func (h *history) answer(q *line.Question, a line.Answer) {
	a.Hooks = make(map[string]line.Hook)
	for _, g := range a.Groups {
		a.Hooks[g.Entity] = h.lookUp(g.Entity)
	}
	for _, p := range a.Parts {
		for _, r := range p.Rows {
			a.Hooks[r.Entity] = h.lookUp(r.Entity)
		}
	}
	h.move(h.line.Answer(q, a, time.Now()))
}

func (h *history) move(writes []line.Write) {
	h.moved, h.writes = append(h.moved, writes...), append(h.writes, writes...)
}

func (h *history) begin(r *line.Row) {
	hook := h.lookUp(r.Entity)
	if h.hasEnded[r.Seq] {
		h.t.Fatalf("%d has ended, and starts", r.Seq)
	}
	ok, writes := h.line.Confirm(r, hook, time.Now())
	h.move(writes)
	if !ok {
		return
	}
	h.attempts++
	begun := time.Now()
	h.after(20*time.Millisecond, func() {
		result := line.Result{Effect: line.Success, Start: begun, HasEnded: true}
		state, reason := queue.Delivered, ""
		if effect := h.down[hook.Host]; effect != line.NoEffect {
			reason = "status"
			result = line.Result{Effect: effect, Start: begun, Reason: reason, Delay: time.Duration(1+r.Attempts*r.Attempts) * 5 * time.Second}
			if state = queue.Waiting; r.Attempts == 9 {
				state, result.HasEnded = queue.GivenUp, true
			}
		}
		writes := h.line.End(r, result, time.Now())
		h.outcomes = append(h.outcomes, queue.End{Write: writes[0], State: state, Attempts: r.Attempts + 1, Reason: reason})
		h.writes = append(h.writes, writes[0])
		h.move(writes[1:])
	})
}

func (h *history) write() {
	h.statements++
	if _, err := h.messages.Write(h.t.Context(), h.messages.DB, h.moved, h.outcomes); err != nil {
		h.t.Fatal(err)
	}
	for _, o := range h.outcomes {
		if o.State != queue.Waiting {
			h.hasEnded[o.Write.Row.Seq] = true
		}
	}
	writes := h.writes
	h.moved, h.outcomes, h.writes, h.isWriting = nil, nil, nil, false
	h.line.Written(writes, time.Now())
}

// pass lets time pass.
func (h *history) pass(d time.Duration) {
	for end := time.Now().Add(d); ; {
		h.work()
		next := h.line.Next()
		isEvent := false
		if len(h.events) > 0 && (next.IsZero() || !h.events[0].at.After(next)) {
			next, isEvent = h.events[0].at, true
		}
		if next.IsZero() || next.After(end) {
			time.Sleep(time.Until(end))
			return
		}
		time.Sleep(time.Until(next))
		if isEvent {
			e := h.events[0]
			if h.events = h.events[1:]; e.of == h.line {
				e.do()
			}
		}
	}
}

// again sends again some of what has ended.
func (h *history) again() {
	const text = `UPDATE wh_outbox_message SET state = 0, grp = 1, due = bubble_now(), attempts = 0, resent = bubble_now() WHERE state <> 0 AND seq % 7 = ?`
	if _, err := h.db.Exec(text, h.random.IntN(7)); err != nil {
		h.t.Fatal(err)
	}
	clear(h.hasEnded)
	h.line.Resent()
}

// waiting returns how many wait and meet a condition.
func (h *history) waiting(condition string) (n int) {
	if err := h.db.QueryRow(`SELECT COUNT(*) FROM wh_outbox_message WHERE state = 0 AND ` + condition).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// TestHistories runs random histories of a client: webhooks that are set and fail, processes that are
// killed, and notifications that are sent again, over tables that answer at once or take their time.
// What works gets what waits for it within seconds, and what's due goes out. In the end everything has
// ended, and that took few statements.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { run(t, uint64(seed)) })
		})
	}
}

func run(t *testing.T, seed uint64) {
	h := newHistory(t, seed)
	defer h.db.Close()
	defer h.messages.DB.Close()
	entities, hosts := []string{"e0", "e1", "e2", "e3", "e4"}, []string{"a", "b", "c"}
	for range 40 {
		entity, host := entities[h.random.IntN(len(entities))], hosts[h.random.IntN(len(hosts))]
		switch h.random.IntN(10) {
		case 0:
			h.change(entity, func() { h.overrides[entity] = h.hook(host, true) })
		case 1:
			h.change("", func() { clear(h.overrides); h.base = h.hook(host, false) })
		case 2:
			h.change(entity, func() { delete(h.overrides, entity) })
		case 3, 4:
			h.down[host] = []line.Effect{line.NoEffect, line.Failure, line.NoConnection}[h.random.IntN(3)]
		case 5:
			h.claim()
		case 6:
			h.again()
		default:
			for range 1 + h.random.IntN(3) {
				h.enqueue(entities[h.random.IntN(len(entities))], 1<<h.random.IntN(6))
			}
		}
		h.pass(time.Duration(h.random.IntN(4000)) * time.Millisecond)
	}
	clear(h.down)
	h.pass(2 * time.Minute) // the longest pause, and more
	if n := h.waiting(`due < bubble_now() - 5000000`); n > 0 {
		t.Errorf("%d wait that were due", n)
	}
	for _, entity := range entities {
		h.change(entity, func() { h.overrides[entity] = h.hook("new "+entity, true) })
		h.enqueue(entity, 1)
	}
	h.pass(30 * time.Second)
	if n := h.waiting(`true`); n > 0 {
		t.Fatalf("%d still wait after everything was set again", n)
	}
	t.Logf("%d notifications, %d attempts, %d statements", len(h.sent), h.attempts, h.statements)
	if most := h.attempts + 100; h.statements > most {
		t.Errorf("%d statements for %d attempts", h.statements, h.attempts)
	}
}
