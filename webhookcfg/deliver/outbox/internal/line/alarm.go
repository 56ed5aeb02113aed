package line

import (
	"container/heap"
	"time"
)

// alarm has the webhooks that may have something to ask for or to start at a time.
type alarm struct {
	all  timers
	next time.Time // for anything else; zero: never
}

type timer struct {
	at time.Time
	of *webhook
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = timer{}
	*t = (*t)[:len(*t)-1]
	return last
}

func (a *alarm) set(at time.Time)                { a.next = earliest(a.next, at) }
func (a *alarm) setFor(w *webhook, at time.Time) { heap.Push(&a.all, timer{at, w}) }
func (a *alarm) due(now time.Time) (all []*webhook) {
	for len(a.all) > 0 && !a.all[0].at.After(now) {
		all = append(all, heap.Pop(&a.all).(timer).of)
	}
	return all
}
