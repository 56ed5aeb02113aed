package queue

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// A process looks for work often if it has just found some, and less and less otherwise.
	minPoll = 2 * time.Millisecond
	maxPoll = 150 * time.Millisecond
	// pollShare bounds the time that polls take, also if many clients have a backlog: it rests that many
	// times as long, and longestRest at most.
	pollShare   = 8
	longestRest = time.Second
	// surveyEvery is how often a process looks for what no poll has found.
	surveyEvery = time.Minute

	// claimPage is how many lines are claimed at a time.
	claimPage = 200
	// elsewhereFor is how long a process remembers that another one has a line. It has maxElsewhere of
	// them at most; forgetting one costs a claim.
	elsewhereFor = time.Second
	maxElsewhere = 10_000
)

// hint says that clients have something new.
func (p *process) hint(clients []string) {
	p.mu.Lock()
	var held []*drain
	wake := false
	now := time.Now()
	for _, client := range clients {
		if d := p.lines[client]; d != nil {
			held = append(held, d)
		} else if now.Sub(p.elsewhere[client]) > elsewhereFor {
			p.hinted[client] = true
			wake = true
		}
	}
	p.mu.Unlock()
	for _, d := range held {
		d.hasNews()
	}
	if wake {
		signal(p.hints)
	}
}

// hintMark says that a client was marked.
func (p *process) hintMark(client string) {
	if p.held(client) == nil {
		p.hint([]string{client})
		return
	}
	p.mu.Lock()
	p.hinted[client] = true
	p.mu.Unlock()
	signal(p.hints)
}

func (p *process) held(client string) *drain {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[client]
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

// look finds and claims lines until polling ends.
func (p *process) look(polling, work context.Context) {
	isFirst := true
	lastFound := time.Now()
	var next, rested, survey time.Time
	for {
		hinted, expects := p.await(polling, next)
		switch {
		case polling.Err() != nil:
			return
		case expects:
			if _, ok := p.expects(time.Now()); ok && rested.Before(next) {
				next = rested
			}
			continue // otherwise it has been committed, and we were told
		case !p.mayStart():
			clear(p.sightings) // what keeps us from renewing the lease may keep others from it
			next = time.Now().Add(maxPoll)
			continue
		case hinted:
			p.followHints(polling, work)
			continue
		}
		start := time.Now()
		f, err := p.poll(polling)
		took := time.Since(start)
		if err != nil {
			p.options.Warn(polling, "can't look for notifications", err)
			next = time.Now().Add(Jitter(time.Second))
			clear(p.sightings) // others may have been cut off, too
			continue
		}
		now := time.Now()
		p.takeOver(polling, p.see(f.others, now))
		if isFirst {
			f.news, isFirst = nil, false // what's new was before us; the survey finds it
		}
		isNews := p.distribute(polling, work, f)
		if now := time.Now(); !now.Before(survey) {
			next := time.Second
			if p.survey(polling, work) {
				next = surveyEvery
			}
			survey = now.Add(Jitter(next))
		}
		now = time.Now()
		if isNews {
			lastFound = now
		}
		rested = now.Add(min(pollShare*took, longestRest))
		next = rested
		if at := now.Add(p.pollWait(now, lastFound)); !f.isMore && at.After(next) {
			next = at
		}
	}
}

// await waits for a hint, until a moment after an Enqueue, or until a time.
func (p *process) await(polling context.Context, next time.Time) (hinted, expects bool) {
	timer := time.NewTimer(max(time.Until(next), time.Microsecond))
	defer timer.Stop()
	select {
	case <-polling.Done():
	case <-p.hints:
		hinted = true
	case <-p.enqueuing:
		expects = Wait(polling, minPoll/2)
	case <-timer.C:
	}
	return hinted, expects
}

// followHints claims the clients that were hinted at, and looks at the marks of those that the
// process has.
func (p *process) followHints(polling, work context.Context) {
	var others, held []string
	for _, client := range p.takeHints() {
		if p.held(client) != nil {
			held = append(held, client)
		} else {
			others = append(others, client)
		}
	}
	if len(held) > 0 {
		p.lookAtMarks(polling, held)
	}
	if !p.isScarce() { // otherwise it's not their turn
		p.claim(polling, work, false, nil, others, nil)
	}
}

func (p *process) poll(ctx context.Context) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	after, gaps := p.news.ask(time.Now())
	f, err := p.tables.poll(ctx, p.id, after, gaps, p.owns)
	if err == nil {
		p.news.saw(f.numbers, time.Now())
	}
	return f, err
}

// pollWait returns how long nothing needs to be looked for, if all has been found.
func (p *process) pollWait(now, lastFound time.Time) time.Duration {
	quiet := now.Sub(lastFound)
	if ago, ok := p.expects(now); ok {
		quiet = min(quiet, ago)
	}
	return min(max(quiet/8, minPoll), maxPoll)
}

// distribute acts on what a poll found. It reports whether that was news.
func (p *process) distribute(polling, work context.Context, f found) (isNews bool) {
	for _, client := range f.erased {
		if d := p.held(client); d != nil {
			d.forget()
		}
	}
	if len(f.marked)+len(p.unread) > 0 {
		p.lookAtMarks(polling, f.marked)
		isNews = true
	}
	now := time.Now()
	var news []string
	for _, client := range f.news {
		if d := p.held(client); d != nil {
			isNews = d.hasNews() || isNews
		} else if p.owns(client) {
			news = append(news, client)
		} else {
			p.leaveToOwner(client, now)
		}
	}
	news = slices.Concat(f.waiting, news, p.unclaimed(now))
	return p.claim(polling, work, true, f.due, news, nil) || isNews
}

// leaveToOwner leaves a client with news to the process to which it belongs, for a while.
func (p *process) leaveToOwner(client string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.later[client]; !ok && len(p.later) < maxElsewhere {
		p.later[client] = now.Add(mineFirst)
	}
}

// unclaimed returns clients with news that were left to others long enough.
func (p *process) unclaimed(now time.Time) (clients []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, at := range p.later {
		if !at.After(now) && len(clients) < claimPage {
			clients = append(clients, client)
			delete(p.later, client)
		}
	}
	return clients
}

// survey finds what no poll has found: notifications whose transaction was open for long, or whose
// line was lost. It reports whether it has looked at everything.
func (p *process) survey(polling, work context.Context) bool {
	for after := ""; ; {
		start := time.Now()
		call, cancel := context.WithTimeout(polling, callTimeout)
		clients, next, err := p.tables.survey(call, p.id, after)
		cancel()
		if err != nil {
			p.options.Warn(polling, "can't look for notifications", err)
			return false
		}
		var others []string
		for _, client := range clients {
			if d := p.held(client); d != nil {
				d.surveyed()
			} else {
				others = append(others, client)
			}
		}
		for page := range slices.Chunk(others, claimPage) {
			p.claim(polling, work, false, nil, nil, page)
		}
		if next == "" {
			return p.rewind(polling)
		}
		if !Wait(polling, time.Since(start)) { // the others' turn
			return false
		}
		after = next
	}
}

// rewind starts the news from the highest number there is, if that's lower than what was seen: the tables
// have lost some, for example in a failover to a server that lagged behind, and use their numbers again.
func (p *process) rewind(ctx context.Context) bool {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	newest, err := p.tables.newest(call)
	if err == nil && newest < p.news.high {
		p.news = &news{high: newest}
	}
	return err == nil
}

// isScarce reports whether others wait for a turn.
func (p *process) isScarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce != [2]bool{}
}

// half is how many turns those of a kind have while others want one.
func (p *process) half() int { return max(p.options.Clients/2, 1) }

// free returns how many turns of a kind are free. The other kind has half of them if it wants them.
func (p *process) free(kind int, isWanted bool) int {
	most := p.options.Clients
	if isWanted || p.scarce[1-kind] {
		most = p.half()
	}
	return max(min(most-p.active[kind], p.options.Clients-p.active[0]-p.active[1]), 0)
}

// claim claims lines as long as there are turns, and starts to drain them. Those with news that get
// no turn become due, and so do those that are waiting, so they wait in the tables, in one order with
// all others. Only a poll knows of all that want a turn.
func (p *process) claim(polling, work context.Context, isPoll bool, due, news, waiting []string) bool {
	due, news, late := p.share(isPoll, due, news)
	claims, waiting := slices.Concat(due, news), append(waiting, late...)
	if len(claims)+len(waiting) == 0 {
		return false
	}
	start := time.Now()
	call, cancel := context.WithTimeout(polling, callTimeout)
	defer cancel()
	claimed, err := p.tables.claim(call, &p.identity, claims, waiting, isPoll)
	var pauses []clientPause
	var marks []mark
	if err == nil && len(claimed) > 0 {
		if pauses, err = p.tables.pauses(call, claimed, start); err == nil {
			marks, err = p.tables.marks(call, p.id, claimed)
		}
	}
	if errors.Is(err, errLost) {
		p.lose()
	}
	p.unsure = p.unsure[min(len(due), len(p.unsure)):]
	if err != nil {
		p.options.Warn(polling, "can't claim clients", err)
		p.unsure = slices.Concat(p.unsure, claims, waiting)
		return false
	}
	p.extended(start)
	p.remember(claims, start)
	for _, client := range claimed {
		kind := turnDue
		if slices.Contains(news, client) {
			kind = turnNews
		}
		p.start(work, client, kind, pauses, marks)
	}
	return len(claimed) > 0
}

// share returns those of the clients that have a turn now. Those with news that have none are late.
func (p *process) share(isPoll bool, due, news []string) (dueNow, newsNow, late []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := make(map[string]bool)
	others := func(clients []string) []string {
		return slices.DeleteFunc(clients, func(client string) bool {
			had := seen[client] || p.lines[client] != nil
			seen[client] = true
			return had
		})
	}
	p.unsure = others(p.unsure)
	due = slices.Concat(p.unsure, others(due))
	news = others(news)
	dues := min(len(due), p.free(turnDue, len(news) > 0), claimPage)
	fresh := min(len(news), p.free(turnNews, len(due) > 0))
	// The last turn goes to each kind in turn.
	if left := p.options.Clients - p.active[0] - p.active[1]; dues+fresh > left {
		if p.wasNews {
			fresh = max(left-dues, 0)
		} else {
			dues = max(left-fresh, 0)
		}
		p.wasNews = !p.wasNews
	}
	if isPoll {
		p.scarce = [2]bool{len(due) > dues, len(news) > fresh}
		p.yields = max(min(len(news)-fresh, p.active[turnDue]+dues-p.half()), 0)
	}
	p.yield()
	return due[:dues], news[:fresh], news[fresh:]
}

// yield lets lines that are due look whether it's they who give their turn to one with something new.
func (p *process) yield() {
	if p.yields == 0 {
		return
	}
	for _, d := range p.lines {
		signal(d.kick)
	}
}

// takeYield reports whether a line that's due gives its turn to one with something new.
func (p *process) takeYield() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.yields == 0 {
		return false
	}
	p.yields--
	return true
}

// remember remembers for a moment that others have the lines of clients, unless they are started.
func (p *process) remember(clients []string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.elsewhere) > maxElsewhere {
		clear(p.elsewhere)
	}
	for _, client := range clients {
		p.elsewhere[client] = now
	}
}

// start starts to drain a line that was claimed.
func (p *process) start(ctx context.Context, client string, kind int, pauses []clientPause, marks []mark) {
	d := newDrain(p, client, kind)
	for _, s := range pauses {
		if s.client == client {
			d.line.Restore(s.Pause)
		}
	}
	d.woken(marks)
	p.mu.Lock()
	p.lines[client] = d
	delete(p.elsewhere, client)
	delete(p.later, client)
	p.active[kind]++
	p.mu.Unlock()
	p.drains.Go(func() { d.run(ctx) })
}

// lookAtMarks reads the marks of clients that the process has.
func (p *process) lookAtMarks(ctx context.Context, clients []string) {
	clients = append(clients, p.unread...)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	marks, err := p.tables.marks(call, p.id, clients)
	if p.unread = nil; err != nil {
		p.options.Warn(ctx, "can't read which webhooks have changed", err)
		p.unread = clients // no poll may find them again
		return
	}
	for _, client := range clients {
		if d := p.held(client); d != nil {
			d.woken(marks)
		}
	}
}
