package outbox

import (
	"context"
	"database/sql"
	"time"
)

const (
	// A process looks for work often if it has just found some, and less and less otherwise.
	minPoll = 2 * time.Millisecond
	maxPoll = 150 * time.Millisecond
	// expectFor is how long a process looks often after an Enqueue.
	expectFor = 100 * time.Millisecond
	pollLimit = 200
	// pollShare bounds the time that polls take, also if many clients have a backlog: it rests
	// that many times as long.
	pollShare = 8
)

// found is the result of a poll.
type found struct {
	due    []string        // clients whose line nobody has, those that have waited longest first
	woken  []string        // clients whose line the process has, which were woken
	erased []string        // those that it should forget
	fresh  []string        // clients with fresh notifications whose line the process has, or nobody has and isn't due
	others map[int64]int64 // the last sign of life of each other process
	next   string          // if there are more clients with fresh notifications: those after this one
}

// elsewhere is how long a process remembers that another one has a line.
const elsewhere = time.Second

// hint says that clients have fresh notifications.
func (p *process) hint(clients []string) {
	p.mu.Lock()
	var held []*drain
	wake := false
	now := time.Now()
	for _, client := range clients {
		if d := p.lines[client]; d != nil {
			held = append(held, d)
		} else if now.Sub(p.elsewhere[client]) > elsewhere {
			p.hinted[client] = true
			wake = true
		}
	}
	p.mu.Unlock()
	for _, d := range held {
		d.committed()
	}
	if wake {
		signal(p.hints)
	}
}

// look finds and claims lines until polling ends.
func (p *process) look(polling, work context.Context) {
	after := ""
	lastFound := time.Now()
	var next, rested time.Time
	for {
		timer := time.NewTimer(max(time.Until(next), time.Microsecond))
		hinted, expects := false, false
		select {
		case <-polling.Done():
			timer.Stop()
			return
		case <-p.hints:
			hinted = true
		case <-p.enqueuing:
			expects = true
		case <-timer.C:
		}
		timer.Stop()
		if expects {
			if !wait(polling, minPoll/2) {
				return
			}
			if _, ok := p.expects(time.Now()); ok && rested.Before(next) {
				next = rested
			}
			continue // otherwise it has been committed, and we were told
		}
		if !p.mayStart() {
			clear(p.sightings) // what keeps us from renewing the lease may keep others from it
			next = time.Now().Add(maxPoll)
			continue
		}
		if hinted {
			if hints := p.takeHints(); !p.isScarce() { // otherwise it's not their turn
				p.claim(polling, work, hints, nil)
			}
			continue
		}
		start := time.Now()
		f, err := p.poll(polling, after)
		took := time.Since(start)
		if err != nil {
			p.warn(polling, "can't look for notifications", err)
			next, after = time.Now().Add(jitter(time.Second)), ""
			clear(p.sightings) // others may have been cut off, too
			continue
		}
		after = f.next
		p.takeOver(polling, f.others)
		news := p.distribute(polling, work, f)
		now := time.Now()
		if news {
			lastFound = now
		}
		rested = now.Add(pollShare * took)
		next = rested
		if at := now.Add(p.pollWait(now, lastFound)); f.next == "" && at.After(next) {
			next = at
		}
	}
}

func (p *process) poll(ctx context.Context, after string) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.queue.poll(ctx, p.id, after, pollLimit)
}

// pollWait returns how long nothing needs to be looked for, if all has been found.
func (p *process) pollWait(now, lastFound time.Time) time.Duration {
	quiet := now.Sub(lastFound)
	if ago, ok := p.expects(now); ok {
		quiet = min(quiet, ago)
	}
	return min(max(quiet/8, minPoll), maxPoll)
}

func (p *process) takeHints() (clients []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.hinted {
		clients = append(clients, client)
	}
	clear(p.hinted)
	return clients
}

// distribute acts on what a poll found. It reports whether that was news.
func (p *process) distribute(polling, work context.Context, f found) (news bool) {
	p.mu.Lock()
	held := make(map[*drain]bool)
	for _, client := range f.fresh {
		if d := p.lines[client]; d != nil {
			held[d] = false
		}
	}
	for _, client := range f.woken {
		if d := p.lines[client]; d != nil {
			held[d] = true
		}
	}
	var forgotten []*drain
	for _, client := range f.erased {
		if d := p.lines[client]; d != nil {
			forgotten = append(forgotten, d)
		}
	}
	p.mu.Unlock()
	for _, d := range forgotten {
		d.forget()
	}
	for d, woken := range held {
		if woken {
			d.wake()
			news = true
		} else if d.hasFresh() {
			news = true
		}
	}
	return p.claim(polling, work, f.due, f.fresh) || news
}

func (t *tables) poll(ctx context.Context, me int64, after string, limit int) (f found, err error) {
	steps := 0
	f.others = make(map[int64]int64)
	err = query(ctx, t.db, t.queries.poll, values{"me": me, "after": []byte(after), "limit": limit}, func(rows *sql.Rows) error {
		var kind int
		var client []byte
		var id, beat int64
		if err := rows.Scan(&kind, &client, &id, &beat); err != nil {
			return err
		}
		switch kind {
		case 1:
			f.due = append(f.due, string(client))
		case 2:
			if isErased := id != 0; isErased {
				f.erased = append(f.erased, string(client))
			} else {
				f.woken = append(f.woken, string(client))
			}
		case 3:
			steps++
			if steps == limit {
				f.next = string(client)
			}
			if isDue := beat != 0; id == me || id == 0 && !isDue {
				f.fresh = append(f.fresh, string(client))
			}
		case 4:
			f.others[id] = beat
		}
		return nil
	})
	return f, err
}
