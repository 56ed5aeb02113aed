package outbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

func (s *session) leads(ctx context.Context, me int64) (bool, error) {
	unlock, err := s.call(ctx, "leads")
	if err != nil {
		return false, err
	}
	defer unlock()
	for id := range s.processes {
		if id < me {
			return false, nil
		}
	}
	return true, nil
}

func (s *session) stats(ctx context.Context) (all Stats, err error) {
	unlock, err := s.call(ctx, "stats")
	if err != nil {
		return all, err
	}
	defer unlock()
	clients := make(map[string]*ClientStats)
	for _, m := range s.messages {
		if m.state > stateWaiting {
			continue
		}
		all.Waiting++
		c := clients[m.client]
		if c == nil {
			c = &ClientStats{Client: m.client}
			clients[m.client] = c
		}
		c.Waiting++
		due := m.due
		if due.IsZero() {
			due = m.enqueued
		}
		c.Overdue = max(c.Overdue, time.Since(due))
		if m.attempts > 0 {
			c.Reason = deliver.Reason(m.reason)
		}
	}
	for client, c := range clients {
		if l := s.lines[client]; l != nil {
			c.Unclaimed, c.Failing = l.owner == 0 && !l.due.After(time.Now()), len(l.pauses)
			for _, p := range l.pauses {
				c.PausedUntil = earliest(c.PausedUntil, p.Until)
			}
		}
		all.Clients = append(all.Clients, *c)
	}
	return all, nil
}

// lockedBuffer is a log that can be read while it's written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.b.String()
	l.b.Reset()
	return text
}

// TestOverdueIsLogged: while something is overdue, one of the processes logs once a minute who
// is behind, how much and why. Otherwise nobody logs anything.
func TestOverdueIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("well", "", w.host(1, &peer{takes: time.Millisecond}))
		w.set("dead", "", w.host(2, &peer{takes: time.Millisecond, respond: func(string) int { return 503 }}))
		var log lockedBuffer
		for range 3 {
			p := w.run(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, deliver.Options{})
			defer p.stop()
		}
		w.db.enqueue("well", "e", "m")
		time.Sleep(10 * time.Minute)
		if text := log.take(); text != "" {
			t.Errorf("logged without a reason:\n%s", text)
		}
		for i := range 100 {
			w.db.enqueue("dead", fmt.Sprint("e", i), fmt.Sprint("d", i))
		}
		time.Sleep(10 * time.Minute)
		text := log.take()
		t.Log(text)
		if n := strings.Count(text, "overdue"); n < 8 || n > 10 {
			t.Errorf("logged %d times in ten minutes", n)
		}
		if !strings.Contains(text, "dead") || !strings.Contains(text, "100 waiting") || !strings.Contains(text, "1 of its receivers failing (throttled)") || !strings.Contains(text, "paused for another") || strings.Contains(text, "well") {
			t.Errorf("doesn't say who, how much and why:\n%s", text)
		}
	})
}

func TestClientStatsString(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		minute := time.Minute
		for _, tt := range []struct {
			stats ClientStats
			want  string
		}{
			{ClientStats{Client: "a\n", Waiting: 3, Overdue: minute, Unclaimed: true}, `"a\n": 3 waiting, the first due for 1m0s, and no process sends to it`},
			{ClientStats{Client: "a", Waiting: 1000, Overdue: minute}, `"a": 1000 or more waiting, the first due for 1m0s, with as many requests under way as its limits allow`},
			{ClientStats{Client: "a"}, `"a": nothing waiting`},
			{ClientStats{Client: "a", Waiting: 1, Reason: "status"}, `"a": 1 waiting for a retry (status)`},
			{
				ClientStats{Client: "a", Waiting: 3, Overdue: minute, Failing: 2, Reason: "status", PausedUntil: time.Now().Add(minute)},
				`"a": 3 waiting, the first due for 1m0s, 2 of its receivers failing (status), paused for another 1m0s`,
			},
		} {
			if got := tt.stats.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		}
	})
}
