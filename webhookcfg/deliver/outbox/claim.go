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

// defaultClients is how many clients a process sends to at a time. Lines that it holds without
// anything to send don't count.
const defaultClients = 256

// claimed is a line that was claimed.
type claimed struct {
	client string
	left   time.Duration // until it's due
	pauses []pause
}

// claim claims lines as long as there are turns, and starts to drain them.
func (p *process) claim(polling, work context.Context, clients []string) bool {
	p.mu.Lock()
	skip := make(map[string]bool)
	clients = slices.DeleteFunc(clients, func(client string) bool {
		had := skip[client] || p.lines[client] != nil
		skip[client] = true
		return had
	})
	free := p.options.Clients - p.active
	p.scarce = len(clients) > free
	p.mu.Unlock()
	clients = clients[:max(0, min(len(clients), free, pollLimit))]
	if len(clients) == 0 {
		return false
	}
	start := time.Now()
	call, cancel := context.WithTimeout(polling, callTimeout)
	defer cancel()
	all, err := p.queue.claim(call, &p.identity, lease, clients)
	if errors.Is(err, errLost) {
		p.lose()
	}
	if err != nil {
		p.warn(polling, "can't claim clients", err)
		p.hintLater(clients)
		return false
	}
	p.extended(start)
	for _, c := range all {
		p.start(work, c)
	}
	return len(all) > 0
}

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
		l.rescan = now.Add(c.left)
	}
	d := &drain{process: p, kick: make(chan struct{}, 1), line: l, claimed: now}
	if l.order == InOrder {
		l.again[zoneRetry] = &position{due: 1}
	}
	if c.left < -time.Hour { // it was woken: due is zero
		p.wakes.Add(1)
		l.wake(now, staleness)
		l.rescan = time.Time{}
	}
	p.mu.Lock()
	p.lines[c.client] = d
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

// claim creates the missing lines, locks those that nobody has and takes them. It also returns
// those that an earlier claim has taken whose response was lost. They count as woken.
func (t *tables) claim(ctx context.Context, me *identity, lease time.Duration, clients []string) (all []claimed, err error) {
	slices.Sort(clients) // against deadlocks
	err = t.fenced(ctx, me, lease, func(tx *sql.Tx) error {
		all = all[:0]
		v := values{"me": me.id, "never": int64(never)}
		params := list(blobs(clients), v)
		create := t.compile(t.engine.insertOnce + ` INTO {line} (client, owner, due, pauses) VALUES (` +
			strings.ReplaceAll(params, ",", `,0,@never,''),(`) + `,0,@never,'')` + t.engine.onConflict)
		if _, err := exec(ctx, tx, create, v); err != nil {
			return err
		}
		free := t.compile(`SELECT client, CASE owner WHEN 0 THEN due ELSE 0 END - {now}, pauses FROM {line}
WHERE owner IN (0, @me) AND client IN (` + params + `)` + t.engine.lockRows)
		var names []string
		err := query(ctx, tx, free, v, func(rows *sql.Rows) error {
			var client []byte
			var left int64
			var pauses string
			if err := rows.Scan(&client, &left, &pauses); err != nil {
				return err
			}
			c := claimed{client: string(client), left: micros(left)}
			if pauses != "" {
				if err := json.Unmarshal([]byte(pauses), &c.pauses); err != nil {
					return fmt.Errorf("outbox: pauses of a line: %w", err)
				}
			}
			all, names = append(all, c), append(names, c.client)
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		_, err = exec(ctx, tx, t.compile(`UPDATE {line} SET owner = @me, due = @never WHERE client IN (`+list(blobs(names), v)+`)`), v)
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
