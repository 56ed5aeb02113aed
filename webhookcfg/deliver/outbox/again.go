package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
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
		err = o.tables.sendOneAgain(ctx, client, s.ID)
	default:
		err = o.tables.startResend(ctx, client, s)
	}
	if err != nil {
		return fmt.Errorf("outbox: send again: %w", err)
	}
	if s.ID != "" {
		o.Committed(client)
	} else {
		signal(o.resending)
	}
	return nil
}

// errSelection is for a selection that has lost its identifier, which must not mean all, and for
// one that's ambiguous.
var errSelection = fmt.Errorf("%w: set either the ID or the Scope of the selection", webhookcfg.ErrInvalidArgument)

const (
	// sentAgain are the columns of a notification that is sent again.
	sentAgain = `UPDATE {message} SET state = 0, due = 0, attempts = 0, since = 0, status = 0, reason = '', resent = {now}`

	// isLater is a condition for notifications that aren't due anyway.
	isLater = `(state >= 2 OR state = 1 AND due > 0)`
)

func (t *tables) sendOneAgain(ctx context.Context, client, id string) error {
	v := values{"client": []byte(client), "id": id, "wait": resendEvery.Microseconds()}
	rows, err := exec(ctx, t.db, t.compile(sentAgain+` WHERE client = @client AND id = @id AND `+isLater+` AND resent <= {now} - @wait`), v)
	if err != nil || rows > 0 {
		return err
	}
	isKnown := false
	err = query(ctx, t.db, t.compile(`SELECT CASE WHEN `+isLater+` THEN 1 ELSE 0 END, resent + @wait - {now} FROM {message} WHERE client = @client AND id = @id`), v, func(rows *sql.Rows) error {
		isKnown = true
		var later bool
		var left int64
		if err := rows.Scan(&later, &left); err != nil || !later {
			return err
		}
		return tooSoonError(micros(left))
	})
	if err == nil && !isKnown {
		err = sent.ErrNotFound
	}
	return err
}

// startResend writes down that a client sends notifications again.
func (t *tables) startResend(ctx context.Context, client string, s sent.Selection) error {
	v := values{
		"client": []byte(client), "entity": []byte(s.Scope.Entity()), "since": since(s), "due": resendParts[0].start(since(s)),
		"wait": resendEvery.Microseconds(),
	}
	rows, err := exec(ctx, t.db, t.compile(`
UPDATE {again} SET entity = @entity, since = @since, started = {now}, ended = 0, steps = 0, part = 0, due = @due, seq = 0, sent = 0
WHERE client = @client AND ended > 0 AND ended <= {now} - @wait`), v)
	if err != nil || rows > 0 {
		return err
	}
	rows, err = exec(ctx, t.db, t.compile(t.engine.insertOnce+` INTO {again} (client, entity, since, started, ended, steps, part, due, seq, sent)
VALUES (@client, @entity, @since, {now}, 0, 0, 0, @due, 0, 0)`+t.engine.ifNew("client")), v)
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

// resendParts are the notifications that are sent again, in order. Retries are those that
// nobody would wait for: they are due too late.
var resendParts = [...]struct {
	state int
	start func(since int64) int64 // the due time of the first one
}{
	{stateWaiting, func(int64) int64 { return 1 }},
	{stateGivenUp, func(since int64) int64 { return since }}, // none ended before it was enqueued
	{stateDropped, func(since int64) int64 { return since }},
}

// resendAll makes notifications due that clients send again, until ctx ends.
func (p *process) resendAll(ctx context.Context) {
	for ctx.Err() == nil {
		if p.resend(ctx) {
			continue
		}
		timer := time.NewTimer(jitter(resendLook))
		select {
		case <-p.resending:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// resend makes a step for each client that sends many notifications again, so that nobody waits
// for those with more of them, or for those whose step fails. It reports whether there was one.
func (p *process) resend(ctx context.Context) (found bool) {
	for after := ""; ; {
		clients, err := p.queue.resending(ctx, after)
		p.warn(ctx, "can't send notifications again", err)
		for _, client := range clients {
			start := time.Now()
			if err := p.queue.resendSome(ctx, client); err != nil {
				p.warn(ctx, "can't send notifications again", fmt.Errorf("client %q: %w", client, err))
			} else {
				p.Committed(client)
				found = true
			}
			if !wait(ctx, min(max(resendWait, time.Since(start)), time.Second)) { // the others' turn
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
	err = query(ctx, t.db, t.fixed(`SELECT client FROM {again} WHERE ended = 0 AND client > @after ORDER BY client LIMIT @limit`), v, func(rows *sql.Rows) error {
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
	return t.transaction(ctx, func(tx *sql.Tx) error { return t.resendStep(ctx, tx, client) })
}

// resendStep makes some notifications of a client due. The first statement takes the row, so
// that two processes don't do the same step.
func (t *tables) resendStep(ctx context.Context, tx *sql.Tx, client string) error {
	v := values{"client": []byte(client), "limit": resendStep}
	rows, err := exec(ctx, tx, t.compile(`UPDATE {again} SET steps = steps + 1 WHERE client = @client AND ended = 0`), v)
	if err != nil || rows == 0 {
		return err
	}
	var entity []byte
	var since, started, due, seq int64
	var part int
	err = query(ctx, tx, t.compile(`SELECT entity, since, started, part, due, seq FROM {again} WHERE client = @client`), v, func(rows *sql.Rows) error {
		return rows.Scan(&entity, &since, &started, &part, &due, &seq)
	})
	if err != nil {
		return err
	}
	isRetry := resendParts[part].state == stateWaiting
	if isRetry {
		due = max(due, started+resendSoon.Microseconds())
	}
	var all []string
	n := 0
	v["state"], v["due"], v["seq"] = resendParts[part].state, due, seq
	err = query(ctx, tx, t.compile(`SELECT seq, entity, due, enqueued`+nextRetry), v, func(rows *sql.Rows) error {
		var of []byte
		var enqueued int64
		if err := rows.Scan(&seq, &of, &due, &enqueued); err != nil {
			return err
		}
		n++
		isSelected := enqueued >= since && (len(entity) == 0 || string(of) == string(entity))
		if isSelected && (isRetry || due <= started) { // what has ended since then was perhaps sent by us
			all = append(all, strconv.FormatInt(seq, 10))
		}
		return nil
	})
	if err != nil {
		return err
	}
	var sent int64
	if len(all) > 0 {
		if sent, err = exec(ctx, tx, t.compile(sentAgain+` WHERE `+isOneOf(all)), v); err != nil {
			return err
		}
	}
	ended := ""
	if n < resendStep || !isRetry && due > started {
		part, seq = part+1, 0
		if part == len(resendParts) {
			part, ended = 0, `, ended = {now}`
		}
		due = resendParts[part].start(since)
	}
	v["part"], v["due"], v["seq"], v["sent"] = part, due, seq, sent
	_, err = exec(ctx, tx, t.compile(`UPDATE {again} SET part = @part, due = @due, seq = @seq, sent = sent + @sent`+ended+` WHERE client = @client`), v)
	return err
}

// forgetResends removes what nobody wants to know any more.
func (t *tables) forgetResends(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := exec(ctx, t.db, t.compile(`DELETE FROM {again} WHERE ended > 0 AND ended < {now} - @age`), values{"age": keepResends.Microseconds()})
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
	planAll = `
SELECT COUNT(*), COUNT(CASE WHEN enqueued >= @since THEN 1 END)
FROM (SELECT enqueued FROM {message} WHERE state = @state AND client = @client AND due >= @due ORDER BY due DESC LIMIT @limit) q`

	// planEntityEnded is planEntity for all that ended in a state, which the index has.
	planEntityEnded = `
SELECT COUNT(*), COUNT(*) FROM (SELECT seq FROM {message} WHERE client = @client AND entity = @entity AND state = @state ORDER BY seq DESC LIMIT @limit) q`

	planEntity = `
SELECT COUNT(*), COUNT(CASE WHEN enqueued >= @since AND (state > 1 OR due > {now} + @soon) THEN 1 END)
FROM (SELECT enqueued, state, due FROM {message} WHERE client = @client AND entity = @entity AND state = @state ORDER BY seq DESC LIMIT @limit) q`
)

func (t *tables) plan(ctx context.Context, client string, s sent.Selection) (plan sent.Plan, err error) {
	v := values{
		"client": []byte(client), "entity": []byte(s.Scope.Entity()), "since": since(s), "soon": resendSoon.Microseconds(),
	}
	count := func(template string) error {
		left := planLimit - plan.Count
		v["limit"] = left + 1
		return query(ctx, t.db, t.fixed(template), v, func(rows *sql.Rows) error {
			var looked, found int
			err := rows.Scan(&looked, &found)
			plan.Count += min(found, left)
			plan.IsMore = plan.IsMore || looked > left
			return err
		})
	}
	for _, part := range slices.Backward(resendParts[:]) { // retries cost most, since no index has all that it takes
		template := planAll
		if s.Since.IsZero() { // the index has all that it takes
			template = strings.Replace(strings.Replace(planAll, "CASE WHEN enqueued >= @since THEN 1 END", "*", 1), "SELECT enqueued", "SELECT due", 1)
		}
		if v["state"], v["due"] = part.state, part.start(since(s)); part.state == stateWaiting {
			template = strings.Replace(template, "due >= @due", "due > {now} + @soon", 1)
		}
		if !s.Scope.IsAll() {
			template = planEntity
			if s.Since.IsZero() && part.state != stateWaiting {
				template = planEntityEnded
			}
		}
		if err := count(template); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

func (t *tables) lastResend(ctx context.Context, client string) (last sent.Progress, err error) {
	err = query(ctx, t.db, t.fixed(`SELECT entity, since, started, ended, sent FROM {again} WHERE client = @client`), values{"client": []byte(client)}, func(rows *sql.Rows) error {
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
