package queue

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
)

const (
	// never is the due time of lines that have nothing to do, and erased that of lines that a process
	// has and should forget.
	never  = 1 << 61
	erased = -1
	// sooner is how much earlier than others lines are due that wait for a turn with something new. So they
	// come first, whatever else is due.
	sooner = 1 << 60
)

// found is the result of a poll.
type found struct {
	numbers []int64 // of what was enqueued, in order
	isMore  bool    // there are others after them

	news    []string        // clients with something new whose line the process has, or nobody has and isn't due
	waiting []string        // clients whose line waits for a turn with something new, those that have waited longest first
	due     []string        // clients whose line is due, and nobody has, in the same order
	marked  []string        // clients whose line the process has, with marks
	erased  []string        // those that it should forget
	others  map[int64]int64 // the last sign of life of each other process
}

const (
	duePage = 200 // lines that a poll finds
	// mineFirst is how long a line that's due is left to the process to which it belongs.
	mineFirst = time.Second
)

// Each row of a poll has a kind, a client, and two numbers: those of the notification and of the
// owner of its line, or the due time of a line and its owner, or a process and its sign of life.
const (
	pollNews = `
SELECT 1, q.client, q.seq, CASE WHEN l.owner = 0 AND (l.shut = 1 OR l.due <= {now}) THEN -1 ELSE COALESCE(l.owner, 0) END
FROM (SELECT * FROM (SELECT seq, client FROM {message} WHERE seq > @after ORDER BY seq LIMIT @newspage) news GAPS) q LEFT JOIN {line} l ON l.client = q.client`
	pollGaps  = ` UNION ALL SELECT seq, client FROM {message} WHERE `
	pollLines = `
UNION ALL
SELECT 2, client, CASE WHEN due < 0 THEN 2 WHEN due + @minefirst <= {now} THEN 1 ELSE 0 END, 0 FROM (SELECT client, due FROM {line} WHERE owner = 0 AND due <= {now} ORDER BY due LIMIT @duepage) due
UNION ALL
SELECT 3, client, due, 0 FROM (SELECT client, due FROM {line} WHERE owner = @me AND due <= {now} ORDER BY due LIMIT @duepage) mine
UNION ALL
SELECT 4, NULL, id, beat FROM {process} WHERE id <> @me`
)

// poll finds what a process could do.
func (t *Tables) poll(ctx context.Context, me int64, after int64, gaps []int64, isMine func(client string) bool) (f found, err error) {
	below := ""
	if len(gaps) > 0 {
		below = pollGaps + t.Engine.isHeld
	}
	f.others = make(map[int64]int64)
	v := dialect.Values{
		"me": me, "after": after, "held": numbers(gaps), "newspage": newsPage, "duepage": duePage, "minefirst": mineFirst.Microseconds(),
	}
	seen := make(map[string]bool)
	n := 0
	err = t.Query(ctx, t.DB, strings.Replace(pollNews, `GAPS`, below, 1)+pollLines, v, func(rows *sql.Rows) error {
		var kind int
		var id []byte
		var number, detail int64
		if err := rows.Scan(&kind, &id, &number, &detail); err != nil {
			return err
		}
		client := string(id)
		switch kind {
		case 1:
			f.numbers = append(f.numbers, number)
			if number > after {
				n++
			}
			if isOurs := detail == me || detail == 0; isOurs && !seen[client] {
				seen[client] = true
				f.news = append(f.news, client)
			}
		case 2:
			switch {
			case number == 2:
				f.waiting = append(f.waiting, client)
			case number == 1 || isMine(client):
				f.due = append(f.due, client)
			}
		case 3:
			if number == erased {
				f.erased = append(f.erased, client)
			} else {
				f.marked = append(f.marked, client)
			}
		case 4:
			f.others[number] = detail
		}
		return nil
	})
	slices.Sort(f.numbers)
	f.isMore = n == newsPage
	return f, err
}

// claim creates the missing lines of clients, and takes those that nobody has. It also returns those
// that an earlier claim has taken whose response was lost. The lines of those waiting for a turn are
// made due, before others if they have something new.
func (t *Tables) claim(ctx context.Context, me *identity, clients, waiting []string, isNew bool) (claimed []string, err error) {
	both := slices.Concat(clients, waiting)
	slices.Sort(both) // against deadlocks
	isWaiting := make(map[string]bool, len(waiting))
	for _, client := range waiting {
		isWaiting[client] = true
	}
	err = t.fenced(ctx, me, func(tx *sql.Tx) error {
		claimed = nil
		v := dialect.Values{"me": me.id, "never": int64(never)}
		params := list(both, v)
		create := t.Engine.InsertOnce + ` INTO {line} (client, owner, due) VALUES ` + `(` + strings.ReplaceAll(params, `,`, `,0,@never),(`) + `,0,@never)` + t.Engine.IfNew("client")
		if _, err := t.Exec(ctx, tx, create, v); err != nil {
			return err
		}
		var others []string
		free := `SELECT client FROM {line} WHERE owner IN (0, @me) AND client IN (` + params + `)` + t.Engine.LockRows
		err := t.Query(ctx, tx, free, v, func(rows *sql.Rows) error {
			var client []byte
			err := rows.Scan(&client)
			if isWaiting[string(client)] {
				others = append(others, string(client))
			} else {
				claimed = append(claimed, string(client))
			}
			return err
		})
		if err == nil && len(claimed) > 0 {
			_, err = t.Exec(ctx, tx, `UPDATE {line} SET owner = @me, due = @never, shut = 0 WHERE client IN (`+list(claimed, v)+`)`, v)
		}
		if err == nil && len(others) > 0 {
			v["sooner"] = 0
			if isNew {
				v["sooner"] = int64(sooner)
			}
			_, err = t.Exec(ctx, tx, `UPDATE {line} SET due = {now} - @sooner WHERE owner = 0 AND due > {now} AND client IN (`+list(others, v)+`)`, v)
		}
		return err
	})
	return claimed, err
}

// giveBack is what is written about a line that a process gives back.
type giveBack struct {
	client string
	due    time.Duration // from now
	isShut bool
	isGone bool // the client is being erased
}

// giveBack gives a line back. If it was marked meanwhile, it's due.
func (t *Tables) giveBack(ctx context.Context, tx Conn, me int64, b giveBack) error {
	shut := 0
	if b.isShut {
		shut = 1
	}
	v := dialect.Values{"client": []byte(b.client), "me": me, "due": min(b.due.Microseconds(), never/2), "shut": shut}
	text := `UPDATE {line} SET owner = 0, due = CASE WHEN due = 0 THEN {now} ELSE {now} + @due END, shut = @shut WHERE client = @client AND owner = @me`
	if b.isGone {
		text = `DELETE FROM {line} WHERE client = @client AND owner = @me`
	}
	_, err := t.Exec(ctx, tx, text, v)
	return err
}

// surveyPage is how many clients a survey reads at a time.
const surveyPage = 1000

// survey returns the next clients after one for which something waits that nobody would find: its line
// is missing, says that nothing waits, or doesn't know of what's new perhaps.
func (t *Tables) survey(ctx context.Context, me int64, after string) (clients []string, next string, err error) {
	v := dialect.Values{"after": []byte(after), "limit": surveyPage, "me": me, "away": longestAway.Microseconds()}
	n := 0
	err = t.Query(ctx, t.DB, t.Engine.Clients(`0`)+`
SELECT f.client, CASE WHEN l.client IS NULL OR l.owner = 0 AND l.due > {now} + @away THEN 1 WHEN l.owner = @me OR l.owner = 0 AND l.due > {now} AND l.shut = 0
  THEN CASE WHEN (SELECT m.grp FROM {message} m WHERE m.state = 0 AND m.client = f.client ORDER BY m.grp, m.due, m.seq LIMIT 1) <= 1 THEN 1 ELSE 0 END ELSE 0 END
FROM f LEFT JOIN {line} l ON l.client = f.client WHERE f.client IS NOT NULL ORDER BY f.client`, v, func(rows *sql.Rows) error {
		var client []byte
		var isLost bool
		err := rows.Scan(&client, &isLost)
		if next = string(client); isLost {
			clients = append(clients, next)
		}
		n++
		return err
	})
	if n < surveyPage {
		next = ""
	}
	return clients, next, err
}

// newest returns the highest number of a notification.
func (t *Tables) newest(ctx context.Context) (n int64, err error) {
	err = t.Query(ctx, t.DB, `SELECT seq FROM {message} ORDER BY seq DESC LIMIT 1`, nil, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Forget removes all that's known about a client but its notifications. If a process has its line, it's
// asked to drop what's in its memory and to remove the line, unless the process is dead. Forget reports
// whether there's no line.
func (t *Tables) Forget(ctx context.Context, client string, isDead bool) (isForgotten bool, err error) {
	v := dialect.Values{"client": []byte(client), "erased": erased}
	remove := `DELETE FROM {line} WHERE client = @client`
	if !isDead {
		remove += ` AND owner = 0`
	}
	for _, text := range []string{
		remove,
		`UPDATE {line} SET due = @erased WHERE client = @client`,
		`DELETE FROM {pause} WHERE client = @client`,
		`DELETE FROM {mark} WHERE client = @client`,
	} {
		if _, err := t.Exec(ctx, t.DB, text, v); err != nil {
			return false, err
		}
	}
	isForgotten = true
	err = t.Query(ctx, t.DB, `SELECT 1 FROM {line} WHERE client = @client`, v, func(*sql.Rows) error { isForgotten = false; return nil })
	return isForgotten, err
}
