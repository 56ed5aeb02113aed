package queue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
)

// Numbers of the states in the table.
const (
	Waiting = iota
	Delivered
	GivenUp
	Dropped
)

const (
	columns = `seq, due, enqueued, resent, entity, grp, attempts, due - {now} AS wait, id, content_type, CASE WHEN length(body) <= 4096 THEN body END AS body, {now} - enqueued AS age, {now} - CASE WHEN resent > enqueued THEN resent ELSE enqueued END AS waited`

	// groupPage is how many groups a listing has.
	groupPage = 200
)

// Answer reads what a question of a client's line asks for. The answer has no Hooks yet.
func (t *Tables) Answer(ctx context.Context, client string, q *line.Question) (line.Answer, error) {
	if q.IsListing {
		return t.list(ctx, client, q.After)
	}
	a := line.Answer{Parts: make([]line.Found, len(q.Parts))}
	v := dialect.Values{"client": []byte(client), "held": numbers(q.Held), "out": names(q.Without)}
	for i, p := range q.Parts {
		n := strconv.Itoa(i)
		v["group"+n], v["limit"+n] = int64(p.Group), p.Limit
	}
	// In this order, so that what gets due between the two isn't in neither.
	if err := t.readNext(ctx, q, v, a.Parts); err != nil {
		return line.Answer{}, err
	}
	return a, t.read(ctx, q, v, a.Parts)
}

// read reads the notifications of each part.
func (t *Tables) read(ctx context.Context, q *line.Question, v dialect.Values, parts []line.Found) error {
	var text strings.Builder
	for i, p := range q.Parts {
		n := strconv.Itoa(i)
		if i > 0 {
			text.WriteString("\nUNION ALL\n")
		}
		text.WriteString(`SELECT * FROM (SELECT ` + n + ` AS part, ` + columns + ` FROM {message} WHERE state = 0 AND client = @client`)
		if p.Entity != "" {
			v["entity"+n] = []byte(p.Entity)
			text.WriteString(` AND entity = @entity` + n + ` AND @group` + n + ` NOT IN (grp, grp - 1)`)
		} else {
			text.WriteString(` AND grp = @group` + n)
			if !p.All && p.Group.IsTried() {
				text.WriteString(` AND due <= {now}`) // others are due, whatever the clock says
			}
			if len(q.Without) > 0 {
				text.WriteString(` AND NOT ` + t.Engine.isOut)
			}
		}
		if len(q.Held) > 0 {
			text.WriteString(` AND NOT ` + t.Engine.isHeld)
		}
		order := `due, seq`
		if p.Entity != "" {
			order = `seq`
		}
		text.WriteString(` ORDER BY ` + order + ` LIMIT @limit` + n + `) p` + n)
	}
	dues := make(map[int64]int64)
	err := t.Query(ctx, t.DB, text.String(), v, func(rows *sql.Rows) error {
		var r line.Row
		var part int
		var due, wait, age, waited int64
		var entity []byte
		if err := rows.Scan(&part, &r.Seq, &due, &r.Enqueued, &r.Resent, &entity, &r.Group, &r.Attempts, &wait, &r.ID, &r.ContentType, &r.Body, &age, &waited); err != nil {
			return err
		}
		r.Entity, r.Wait, r.Age, r.Waited = string(entity), max(Micros(wait), 0), Micros(age), Micros(waited)
		dues[r.Seq] = due
		parts[part].Rows = append(parts[part].Rows, r)
		return nil
	})
	for i, p := range q.Parts {
		slices.SortFunc(parts[i].Rows, func(a, b line.Row) int {
			if p.Entity != "" {
				return cmp.Compare(a.Seq, b.Seq)
			}
			return cmp.Or(cmp.Compare(dues[a.Seq], dues[b.Seq]), cmp.Compare(a.Seq, b.Seq))
		})
	}
	return err
}

// readNext reads when the next notification of each group is due. Those that were never tried are
// due at once.
func (t *Tables) readNext(ctx context.Context, q *line.Question, v dialect.Values, parts []line.Found) error {
	var text strings.Builder
	for i, p := range q.Parts {
		if p.Entity != "" || p.All || !p.Group.IsTried() {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\nUNION ALL\n")
		}
		n := strconv.Itoa(i)
		text.WriteString(`SELECT ` + n + `, wait FROM (SELECT due - {now} AS wait FROM {message} WHERE state = 0 AND client = @client AND grp = @group` + n + ` AND due > {now} ORDER BY due LIMIT 1) n` + n)
	}
	if text.Len() == 0 {
		return nil
	}
	return t.Query(ctx, t.DB, text.String(), v, func(rows *sql.Rows) error {
		var part int
		var wait int64
		err := rows.Scan(&part, &wait)
		parts[part].Next = max(Micros(wait), time.Microsecond)
		return err
	})
}

// list reads a page of the groups in which something waits for a client.
func (t *Tables) list(ctx context.Context, client string, after line.Group) (a line.Answer, err error) {
	first := ` FROM {message} m WHERE m.state = 0 AND m.client = @client AND m.grp = f.grp ORDER BY m.due, m.seq LIMIT 1)`
	text := t.Engine.groups + ` SELECT f.grp, (SELECT m.entity` + first + `, (SELECT m.due - {now}` + first + ` FROM f WHERE f.grp IS NOT NULL ORDER BY f.grp`
	err = t.Query(ctx, t.DB, text, dialect.Values{"client": []byte(client), "after": int64(after), "limit": groupPage}, func(rows *sql.Rows) error {
		var g line.Listed
		var entity []byte
		var wait int64
		err := rows.Scan(&g.Group, &entity, &wait)
		g.Entity, g.Wait = string(entity), Micros(wait)
		a.Groups = append(a.Groups, g)
		return err
	})
	a.IsMore = len(a.Groups) == groupPage
	return a, err
}

// End is what became of an attempt.
type End struct {
	// Write is what the line decided.
	Write line.Write
	// State is where the notification stands: Waiting if there's to be another attempt.
	State int
	// Attempts is how many were made, and Status and Reason are those of the last one.
	Attempts int
	Status   int
	Reason   string
	// History is what to add to it.
	History string
}

// move and end are what is written, as the statements read it.
type move struct {
	Seq      int64 `json:"n"`
	Enqueued int64 `json:"e"`
	Resent   int64 `json:"r"`
	Group    int64 `json:"g"`
	Delay    int64 `json:"d"` // in microseconds
}

type end struct {
	move
	State    int    `json:"s"`
	Attempts int    `json:"a"`
	Status   int    `json:"c"`
	Reason   string `json:"w"`
	History  string `json:"h"`
}

// Write writes what became of notifications, and which ones move to another group. Nothing is written about
// those that were sent again meanwhile. It returns the numbers of those among the ended ones.
func (t *Tables) Write(ctx context.Context, tx Conn, moved []line.Write, ended []End) (again map[int64]bool, err error) {
	var moves []move
	for _, w := range moved {
		moves = append(moves, moveOf(w))
	}
	var ends []end
	for _, e := range ended {
		w := moveOf(e.Write)
		if e.State != Waiting {
			w.Group = 0
		}
		ends = append(ends, end{w, e.State, e.Attempts, e.Status, e.Reason, e.History})
	}
	if len(moves) > 0 {
		if _, err := t.execJSON(ctx, tx, t.Engine.moves, moves); err != nil {
			return nil, err
		}
	}
	if len(ends) == 0 {
		return nil, nil
	}
	n, err := t.execJSON(ctx, tx, t.Engine.ends, ends)
	if err != nil || int(n) == len(ends) {
		return nil, err
	}
	return t.sentAgain(ctx, tx, ends)
}

// sentAgain returns the numbers of notifications that were sent again since they were read, or that others have
// now.
func (t *Tables) sentAgain(ctx context.Context, tx Conn, ends []end) (again map[int64]bool, err error) {
	read := make(map[int64]move)
	var all []int64
	for _, e := range ends {
		read[e.Seq], all = e.move, append(all, e.Seq)
	}
	again = make(map[int64]bool)
	err = t.Query(ctx, tx, `SELECT seq, enqueued, resent FROM {message} WHERE `+t.Engine.isHeld, dialect.Values{"held": numbers(all)}, func(rows *sql.Rows) error {
		var seq, enqueued, resent int64
		err := rows.Scan(&seq, &enqueued, &resent)
		again[seq] = enqueued != read[seq].Enqueued || resent != read[seq].Resent
		return err
	})
	return again, err
}

func moveOf(w line.Write) move {
	return move{w.Row.Seq, w.Row.Enqueued, w.Row.Resent, int64(w.Group), w.Delay.Microseconds()}
}

// execJSON runs the statement of a template on rows that it reads from JSON.
func (t *Tables) execJSON(ctx context.Context, tx Conn, template string, rows any) (changed int64, err error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return 0, err
	}
	return t.Exec(ctx, tx, template, dialect.Values{"rows": string(text)})
}

// numbers and names return JSON arrays.
func numbers(all []int64) string {
	text, _ := json.Marshal(all) // numbers
	return string(text)
}

func names(all []string) string {
	var text []string
	for _, name := range all {
		text = append(text, strings.ToUpper(hex.EncodeToString([]byte(name))))
	}
	encoded, _ := json.Marshal(text) // texts
	return string(encoded)
}

// body reads the body of a notification, or nil if it's gone.
func (t *Tables) body(ctx context.Context, seq, enqueued int64) (body []byte, err error) {
	err = t.Query(ctx, t.DB, `SELECT body FROM {message} WHERE seq = @seq AND enqueued = @enqueued`, dialect.Values{"seq": seq, "enqueued": enqueued}, func(rows *sql.Rows) error {
		body = []byte{}
		return rows.Scan(&body)
	})
	return body, err
}
