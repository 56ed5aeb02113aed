package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

const (
	// resendStep is how many notifications of a client are made due at a time. resendWait is the
	// shortest pause between two of these steps, of one client or of two, so that others can
	// write: SQLite has one writer.
	resendStep  = 500
	resendWait  = 5 * time.Millisecond
	resendLook  = 2 * time.Second // for those that another process started
	resendLimit = 20              // clients that are read at a time

	// resendEvery is how long a client has to wait after a SendAgain of many before the next, and
	// after that of one notification before it sends the same one again: otherwise it would go
	// out as often as a form is sent, whatever its receiver responds.
	resendEvery = 10 * time.Second
	// resendSoon: a retry that's due so soon is left alone.
	resendSoon = 10 * time.Second

	// keepResends is how long a client sees how its last SendAgain of many went.
	keepResends = 24 * time.Hour

	planLimit = 1000 // notifications that a plan counts
)

// SendAgain implements [sent.Queue]. For a selection with a Scope, it writes
// a small row, and a process that runs makes 500 notifications due at a time. A client can only
// have one of these under way, and start the next one 10 seconds after that. It can also send the
// same notification again every 10 seconds. An error before that has a RetryAfter. If the selection
// has neither an ID nor a Scope, or both, the error wraps [webhookcfg.ErrInvalidArgument].
func (o *Outbox) SendAgain(ctx context.Context, client string, s sent.Selection) (err error) {
	switch {
	case (s.ID == "") == (s.Scope == webhookcfg.Scope{}):
		err = errSelection
	case len(s.Scope.Entity()) > maxName: // Enqueue refuses its notifications, and MySQL would cut it
		return nil
	case s.ID != "":
		err = o.sendOneAgain(ctx, client, s.ID)
	default:
		err = o.tables.startResend(ctx, client, s)
	}
	if err != nil {
		return fmt.Errorf("outbox: send again: %w", err)
	}
	if s.ID == "" {
		select {
		case o.resending <- struct{}{}:
		default:
		}
	}
	return nil
}

// errSelection is for a selection that has lost its identifier, which must not mean all, and for
// one that's ambiguous.
var errSelection = fmt.Errorf("%w: set either the ID or the Scope of the selection", webhookcfg.ErrInvalidArgument)

const (
	// sentAgain are the columns of a notification that is sent again.
	sentAgain = `UPDATE {message} SET state = 0, grp = 1, due = {now}, attempts = 0, status = 0, reason = '', resent = {now}`

	// isLater is a condition for notifications that aren't about to be sent for the first time.
	isLater = `(state > 0 OR attempts > 0)`
)

func (o *Outbox) sendOneAgain(ctx context.Context, client, id string) error {
	t := o.tables
	v := values{"client": []byte(client), "id": id, "wait": resendEvery.Microseconds()}
	var rows int64
	err := t.Transaction(ctx, func(tx *sql.Tx) (err error) {
		rows, err = t.Exec(ctx, tx, sentAgain+` WHERE client = @client AND id = @id AND `+isLater+` AND resent <= {now} - @wait`, v)
		if err == nil && rows > 0 {
			err = t.Wake(ctx, tx, client)
		}
		return err
	})
	if err != nil {
		return err
	}
	if rows > 0 {
		o.queue.Woken(client)
		return nil
	}
	isKnown := false
	err = t.Query(ctx, t.DB, `SELECT CASE WHEN `+isLater+` THEN 1 ELSE 0 END, resent + @wait - {now} FROM {message} WHERE client = @client AND id = @id`, v, func(rows *sql.Rows) error {
		isKnown = true
		var later bool
		var left int64
		if err := rows.Scan(&later, &left); err != nil || !later {
			return err
		}
		return tooSoonError(queue.Micros(left))
	})
	if err == nil && !isKnown {
		err = sent.ErrNotFound
	}
	return err
}

// startResend writes down that a client sends notifications again.
func (t *tables) startResend(ctx context.Context, client string, s sent.Selection) error {
	v := resendParts[0].start(since(s)).values(0)
	v["client"], v["entity"], v["since"], v["wait"] = []byte(client), []byte(s.Scope.Entity()), since(s), resendEvery.Microseconds()
	rows, err := t.Exec(ctx, t.DB, `
UPDATE {again} SET entity = @entity, since = @since, started = {now}, ended = 0, steps = 0, part = 0, grp = @grp, due = @due, seq = @seq, sent = 0
WHERE client = @client AND ended > 0 AND ended <= {now} - @wait`, v)
	if err != nil || rows > 0 {
		return err
	}
	rows, err = t.Exec(ctx, t.DB, t.Engine.InsertOnce+` INTO {again} (client, entity, since, started, ended, steps, part, grp, due, seq, sent)
VALUES (@client, @entity, @since, {now}, 0, 0, 0, @grp, @due, @seq, 0)`+t.Engine.IfNew("client"), v)
	if err == nil && rows == 0 {
		err = tooSoonError(resendEvery)
	}
	return err
}

func since(s sent.Selection) int64 {
	if s.Since.IsZero() {
		return 0
	}
	return max(s.Since.UnixMicro(), 0)
}

// tooSoonError is the error of a SendAgain too soon after another one, or while that goes on. It's
// how long to wait.
type tooSoonError time.Duration

// Error implements error.
func (e tooSoonError) Error() string {
	return fmt.Sprintf("the client sent this again a moment ago, or is still doing so: wait for %v", time.Duration(e))
}

// RetryAfter returns how long to wait.
func (e tooSoonError) RetryAfter() time.Duration { return time.Duration(e) }

// resendParts are the states of the notifications that are sent again, in order, and where each
// starts. Of those that wait, the ones that nobody has tried yet are left alone, and so are retries that
// are due soon.
var resendParts = [...]struct {
	state int
	start func(since int64) position
}{
	{queue.Waiting, func(int64) position { return position{2, -1, -1} }},
	{queue.GivenUp, func(since int64) position { return position{0, since, -1} }}, // none ended before it was enqueued
	{queue.Dropped, func(since int64) position { return position{0, since, -1} }},
}

// resendAll makes notifications due that clients send again, until ctx ends.
func (o *Outbox) resendAll(ctx context.Context, _ int64) {
	for ctx.Err() == nil {
		if o.resend(ctx) {
			continue
		}
		timer := time.NewTimer(queue.Jitter(resendLook))
		select {
		case <-o.resending:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// resend makes a step for each client that sends many notifications again, so that nobody waits
// for those with more of them, or for those whose step fails. It reports whether there was one.
func (o *Outbox) resend(ctx context.Context) (found bool) {
	for after := ""; ; {
		clients, err := o.tables.resending(ctx, after)
		o.warn(ctx, "can't send notifications again", err)
		for _, client := range clients {
			start := time.Now()
			if err := o.tables.resendSome(ctx, client); err != nil {
				o.warn(ctx, "can't send notifications again", fmt.Errorf("client %q: %w", client, err))
			} else {
				found = true
				o.queue.Woken(client)
			}
			if !queue.Wait(ctx, min(max(resendWait, time.Since(start)), time.Second)) { // the others' turn
				return false
			}
		}
		if len(clients) < resendLimit {
			return found
		}
		after = clients[resendLimit-1]
	}
}

// resending returns the clients after one that send many notifications again.
func (t *tables) resending(ctx context.Context, after string) (clients []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v := values{"after": []byte(after), "limit": resendLimit}
	err = t.Query(ctx, t.DB, `SELECT client FROM {again} WHERE ended = 0 AND client > @after ORDER BY client LIMIT @limit`, v, func(rows *sql.Rows) error {
		var client []byte
		err := rows.Scan(&client)
		clients = append(clients, string(client))
		return err
	})
	return clients, err
}

// resendSome makes a step for a client.
func (t *tables) resendSome(ctx context.Context, client string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return t.Transaction(ctx, func(tx *sql.Tx) error { return t.resendStep(ctx, tx, client) })
}

// resendStep makes some notifications of a client due. The first statement takes the row, so
// that two processes don't do the same step.
func (t *tables) resendStep(ctx context.Context, tx *sql.Tx, client string) error {
	v := values{"client": []byte(client), "limit": resendStep}
	rows, err := t.Exec(ctx, tx, `UPDATE {again} SET steps = steps + 1 WHERE client = @client AND ended = 0`, v)
	if err != nil || rows == 0 {
		return err
	}
	var entity []byte
	var since, started int64
	var part int
	var at position
	err = t.Query(ctx, tx, `SELECT entity, since, started, part, grp, due, seq FROM {again} WHERE client = @client`, v, func(rows *sql.Rows) error {
		return rows.Scan(&entity, &since, &started, &part, &at.Group, &at.Due, &at.Seq)
	})
	if err != nil {
		return err
	}
	state := resendParts[part].state
	var all []string
	n := 0
	isOver := false
	v = at.values(resendStep)
	v["client"], v["state"] = []byte(client), state
	err = t.Query(ctx, tx, `SELECT seq, entity, grp, due, enqueued, attempts`+inOrder, v, func(rows *sql.Rows) error {
		var of []byte
		var enqueued int64
		var attempts int
		if err := rows.Scan(&at.Seq, &of, &at.Group, &at.Due, &enqueued, &attempts); err != nil {
			return err
		}
		n++
		isLater := attempts > 0 && at.Due > started+resendSoon.Microseconds()
		if state != queue.Waiting { // what has ended since then was perhaps sent by us
			isLater = at.Due <= started
			isOver = !isLater
		}
		if isLater && enqueued >= since && (len(entity) == 0 || string(of) == string(entity)) {
			all = append(all, strconv.FormatInt(at.Seq, 10))
		}
		return nil
	})
	if err != nil {
		return err
	}
	var sent int64
	if len(all) > 0 {
		if sent, err = t.Exec(ctx, tx, sentAgain+` WHERE `+isOneOf(all), v); err == nil {
			err = t.Wake(ctx, tx, client)
		}
		if err != nil {
			return err
		}
	}
	ended := ""
	if n < resendStep || isOver {
		if part++; part == len(resendParts) {
			part, ended = 0, `, ended = {now}`
		}
		at = resendParts[part].start(since)
	}
	v = at.values(0)
	v["client"], v["part"], v["sent"] = []byte(client), part, sent
	_, err = t.Exec(ctx, tx, `UPDATE {again} SET part = @part, grp = @grp, due = @due, seq = @seq, sent = sent + @sent`+ended+` WHERE client = @client`, v)
	return err
}

// forgetResends removes what nobody wants to know any more.
func (t *tables) forgetResends(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := t.Exec(ctx, t.DB, `DELETE FROM {again} WHERE ended > 0 AND ended < {now} - @age`, values{"age": keepResends.Microseconds()})
	return err
}

// PlanSendAgain implements [sent.Queue]. It counts up to 1,000
// notifications.
func (o *Outbox) PlanSendAgain(ctx context.Context, client string, s sent.Selection) (plan sent.Plan, err error) {
	if s.Scope == (webhookcfg.Scope{}) {
		err = errSelection
	} else if plan, err = o.tables.plan(ctx, client, s); err == nil {
		plan.Last, err = o.tables.lastResend(ctx, client)
	}
	if err != nil {
		return sent.Plan{}, fmt.Errorf("outbox: plan of sending again: %w", err)
	}
	return plan, nil
}

const (
	// planLooks is how many of those that wait a plan looks at, since no index has the retries alone.
	planLooks = 10_000

	// Those that have ended are counted from an index, the latest first.
	planEnded = `
SELECT COUNT(*), COUNT(CASE WHEN enqueued >= @since THEN 1 END)
FROM (SELECT enqueued FROM {message} WHERE state = @state AND client = @client AND grp = 0 AND due >= @since ORDER BY due DESC LIMIT @limit) q`

	planWaiting = `
SELECT COUNT(*), COUNT(CASE WHEN enqueued >= @since AND attempts > 0 AND due > {now} + @soon THEN 1 END)
FROM (SELECT enqueued, attempts, due FROM {message} WHERE state = @state AND client = @client AND grp > 1 ORDER BY grp, due LIMIT @limit) q`

	planEntity = `
SELECT COUNT(*), COUNT(CASE WHEN enqueued >= @since AND (state > 0 OR attempts > 0 AND due > {now} + @soon) THEN 1 END)
FROM (SELECT enqueued, state, due, attempts FROM {message} WHERE client = @client AND entity = @entity AND state = @state ORDER BY seq DESC LIMIT @limit) q`
)

func (t *tables) plan(ctx context.Context, client string, s sent.Selection) (plan sent.Plan, err error) {
	v := values{"client": []byte(client), "entity": []byte(s.Scope.Entity()), "since": since(s), "soon": resendSoon.Microseconds()}
	for _, part := range slices.Backward(resendParts[:]) { // retries cost most
		left := planLimit - plan.Count
		limit, text := left+1, planEnded
		if part.state == queue.Waiting {
			limit, text = planLooks, planWaiting
		}
		if !s.Scope.IsAll() {
			text = planEntity
		}
		v["state"], v["limit"] = part.state, limit
		err := t.Query(ctx, t.DB, text, v, func(rows *sql.Rows) error {
			var looked, found int
			err := rows.Scan(&looked, &found)
			plan.Count += min(found, left)
			plan.IsMore = plan.IsMore || found > left || looked == limit
			return err
		})
		if err != nil {
			return plan, err
		}
	}
	return plan, nil
}

func (t *tables) lastResend(ctx context.Context, client string) (last sent.Progress, err error) {
	err = t.Query(ctx, t.DB, `SELECT entity, since, started, ended, sent FROM {again} WHERE client = @client`, values{"client": []byte(client)}, func(rows *sql.Rows) error {
		var entity []byte
		var since, started, ended int64
		if err := rows.Scan(&entity, &since, &started, &ended, &last.Count); err != nil {
			return err
		}
		if last.Selection.Scope = webhookcfg.All(); len(entity) > 0 {
			last.Selection.Scope = webhookcfg.Entity(string(entity))
		}
		if since > 0 {
			last.Selection.Since = time.UnixMicro(since)
		}
		if last.Started = time.UnixMicro(started); ended > 0 {
			last.Ended = time.UnixMicro(ended)
		}
		return nil
	})
	return last, err
}
