package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// claimed is a line that was claimed.
type claimed struct {
	client string
	left   time.Duration // until it's due
	woken  bool
	pauses []pause
}

// claim claims lines as long as there are turns, and starts to drain them. Those that are due
// go first. Those with fresh notifications that get no turn become due, so they wait in the
// tables, in one order with all others.
func (p *process) claim(polling, work context.Context, due, fresh []string) bool {
	p.mu.Lock()
	skip := make(map[string]bool)
	others := func(clients []string) []string {
		return slices.DeleteFunc(clients, func(client string) bool {
			had := skip[client] || p.lines[client] != nil
			skip[client] = true
			return had
		})
	}
	p.unsure = others(p.unsure)
	due = slices.Concat(p.unsure, others(due))
	clients := slices.Concat(due, others(fresh))
	free := p.options.Clients - p.active
	p.scarce = len(clients) > free
	p.mu.Unlock()
	turns := max(0, min(len(clients), free, pollLimit))
	claims, waiting := clients[:turns], clients[max(turns, len(due)):]
	if len(claims)+len(waiting) == 0 {
		return false
	}
	start := time.Now()
	call, cancel := context.WithTimeout(polling, callTimeout)
	defer cancel()
	all, err := p.queue.claim(call, &p.identity, lease, claims, waiting)
	if errors.Is(err, errLost) {
		p.lose()
	}
	if err != nil {
		p.warn(polling, "can't claim clients", err)
		p.unsure = clients[:max(turns, len(p.unsure))]
		return false
	}
	p.extended(start)
	p.unsure = p.unsure[min(turns, len(p.unsure)):]
	p.remember(claims, start)
	for _, c := range all {
		p.start(work, c)
	}
	return len(all) > 0
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

// maxElsewhere bounds what a process remembers of others' lines. Forgetting one costs a claim.
const maxElsewhere = 10_000

func (p *process) start(ctx context.Context, c claimed) {
	now := time.Now()
	perClient := contain(p.Outbox, func() int { return p.sender.PerClient(c.client) }, 1)
	l := newLine(c.client, perClient, p.options.Order)
	l.known = func(hostport string) deliver.Receiver { return p.receiver(c.client, hostport) }
	l.fresh = true
	for _, s := range c.pauses {
		l.pauses[s.HostPort] = s
		p.sender.Restore(deliver.Receiver{
			Client: c.client, HostPort: s.HostPort, Failures: s.Failures,
			PausedUntil: s.Until, Pause: time.Duration(s.Length) * time.Microsecond, Since: s.Since,
		})
	}
	if c.left < never/2000 {
		l.rescan, l.earlier = now.Add(c.left), &position{}
	}
	d := &drain{process: p, kick: make(chan struct{}, 1), line: l, claimed: now}
	if l.order == InOrder {
		l.again[zoneRetry] = &position{due: 1}
	}
	if c.woken {
		d.wakeAt(now)
		l.rescan = time.Time{}
	}
	p.mu.Lock()
	p.lines[c.client] = d
	delete(p.elsewhere, c.client)
	p.active++
	p.mu.Unlock()
	p.drains.Go(func() { d.run(ctx) })
}

// list adds arguments to values, and returns the list of their parameters. The number of
// parameters is a power of two, so that drivers needn't prepare many different statements.
func list[T any](args []T, v values) string {
	var params []string
	for i := 0; i < len(args) || i&(i-1) != 0; i++ {
		name := "in" + strconv.Itoa(i)
		v[name] = args[min(i, len(args)-1)]
		params = append(params, "@"+name)
	}
	return strings.Join(params, ",")
}

// claim creates the missing lines, locks those that nobody has, and takes those of clients. It
// also returns those that an earlier claim has taken whose response was lost. They count as woken.
// It makes the lines of those due that are waiting.
func (t *tables) claim(ctx context.Context, me *identity, lease time.Duration, clients, waiting []string) (all []claimed, err error) {
	both := slices.Concat(clients, waiting)
	slices.Sort(both) // against deadlocks
	isWaiting := make(map[string]bool, len(waiting))
	for _, client := range waiting {
		isWaiting[client] = true
	}
	err = t.fenced(ctx, me, lease, func(tx *sql.Tx) error {
		all = all[:0]
		v := values{"me": me.id, "never": int64(never)}
		params := list(blobs(both), v)
		create := t.compile(t.engine.insertOnce + ` INTO {line} (client, owner, due, pauses) VALUES (` +
			strings.ReplaceAll(params, ",", `,0,@never,''),(`) + `,0,@never,'')` + t.engine.ifNew("client"))
		if _, err := exec(ctx, tx, create, v); err != nil {
			return err
		}
		free := t.compile(`SELECT client, CASE owner WHEN 0 THEN due ELSE 0 END - {now}, CASE owner WHEN 0 THEN woken ELSE 1 END, pauses FROM {line}
WHERE owner IN (0, @me) AND client IN (` + params + `)` + t.engine.lockRows)
		var taken, others [][]byte
		err := query(ctx, tx, free, v, func(rows *sql.Rows) error {
			var client []byte
			var left int64
			var woken bool
			var pauses string
			if err := rows.Scan(&client, &left, &woken, &pauses); err != nil {
				return err
			}
			if isWaiting[string(client)] {
				others = append(others, client)
				return nil
			}
			c := claimed{client: string(client), left: micros(left), woken: woken}
			if pauses != "" {
				if err := json.Unmarshal([]byte(pauses), &c.pauses); err != nil {
					return fmt.Errorf("outbox: pauses of a line: %w", err)
				}
			}
			all, taken = append(all, c), append(taken, client)
			return nil
		})
		if err == nil && len(taken) > 0 {
			_, err = exec(ctx, tx, t.compile(`UPDATE {line} SET owner = @me, due = @never, woken = 0 WHERE client IN (`+list(taken, v)+`)`), v)
		}
		if err == nil && len(others) > 0 {
			_, err = exec(ctx, tx, t.compile(`UPDATE {line} SET due = {now} WHERE owner = 0 AND due > {now} AND client IN (`+list(others, v)+`)`), v)
		}
		return err
	})
	return all, err
}

func blobs(texts []string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}

// micros converts the database's microseconds. Times far away stay so.
func micros(n int64) time.Duration {
	return time.Duration(max(min(n, never/1000), -never/1000)) * time.Microsecond
}
