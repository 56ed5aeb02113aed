package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
)

// clientPause is a pause of a client's webhook.
type clientPause struct {
	client string
	line.Pause
}

// savedState is a [pause.State] in the tables. Times are microseconds from when it was saved, so that
// clocks that differ don't matter; null is never.
type savedState struct {
	Failures int    `json:"f,omitempty"`
	Length   int64  `json:"l,omitempty"`
	Until    *int64 `json:"u,omitempty"`
	Asked    *int64 `json:"a,omitempty"`
	Tried    *int64 `json:"t,omitempty"`
}

func save(s pause.State, now time.Time) savedState {
	from := func(at time.Time) *int64 {
		if at.IsZero() {
			return nil
		}
		n := at.Sub(now).Microseconds()
		return &n
	}
	return savedState{s.Failures, s.Length.Microseconds(), from(s.Until), from(s.Asked), from(s.Tried)}
}

// restore returns the state. Saved is how long ago it was saved.
func (s savedState) restore(now time.Time, saved time.Duration) pause.State {
	at := func(n *int64) time.Time {
		if n == nil {
			return time.Time{}
		}
		return now.Add(Micros(*n) - saved)
	}
	return pause.State{Failures: s.Failures, Length: Micros(s.Length), Until: at(s.Until), Asked: at(s.Asked), Tried: at(s.Tried)}
}

// pauseColumns are the parameters of a pause.
const pauseColumns = `(client, entity, setting, failures, ends, reason, saved, state)`

// savePauses writes pauses, one of each webhook, and removes those that are over.
func (t *Tables) savePauses(ctx context.Context, tx Conn, all []clientPause, now time.Time) error {
	v := make(dialect.Values)
	var rows []string
	for i, p := range all {
		n := strconv.Itoa(i)
		v["client"+n], v["entity"+n] = []byte(p.client), []byte(p.Entity)
		if p.IsOver(now) {
			if _, err := t.Exec(ctx, tx, `DELETE FROM {pause} WHERE client = @client`+n+` AND entity = @entity`+n, v); err != nil {
				return err
			}
			continue
		}
		state, err := json.Marshal([]savedState{save(p.Webhook, now), save(p.Host, now)})
		if err != nil {
			return err
		}
		ends := p.Webhook.End()
		if end := p.Host.End(); end.After(ends) {
			ends = end
		}
		v["setting"+n], v["reason"+n], v["state"+n] = p.Setting, p.Reason, string(state)
		v["failures"+n], v["ends"+n] = max(p.Webhook.Failures, p.Host.Failures), max(ends.Sub(now), 0).Microseconds()
		rows = append(rows, strings.NewReplacer("N", n).Replace(`(@clientN, @entityN, @settingN, @failuresN, {now} + @endsN, @reasonN, {now}, @stateN)`))
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := t.Exec(ctx, tx, t.Engine.replace+` INTO {pause} `+pauseColumns+` VALUES `+strings.Join(rows, ", ")+t.Engine.replaced, v)
	return err
}

// pauses returns the pauses of clients.
func (t *Tables) pauses(ctx context.Context, clients []string, now time.Time) (all []clientPause, err error) {
	v := make(dialect.Values)
	text := `SELECT client, entity, setting, reason, {now} - saved, state FROM {pause} WHERE client IN (` + list(clients, v) + `) ORDER BY client, entity`
	err = t.Query(ctx, t.DB, text, v, func(rows *sql.Rows) error {
		var p clientPause
		var client, entity []byte
		var saved int64
		var state string
		if err := rows.Scan(&client, &entity, &p.Setting, &p.Reason, &saved, &state); err != nil {
			return err
		}
		var states []savedState
		if err := json.Unmarshal([]byte(state), &states); err != nil || len(states) != 2 {
			return fmt.Errorf("outbox: pause of a webhook in the tables: %w", err)
		}
		p.client, p.Entity, p.Override = string(client), string(entity), len(entity) > 0
		p.Webhook, p.Host = states[0].restore(now, Micros(saved)), states[1].restore(now, Micros(saved))
		all = append(all, p)
		return nil
	})
	return all, err
}
