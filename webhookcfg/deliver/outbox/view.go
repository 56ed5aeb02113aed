package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

var _ sent.Queue = (*Outbox)(nil)

// Notifications implements [sent.Queue]. A page reads as many rows as it has,
// in order of an index. Those of a State, without an Entity, are in another order: the ones that
// ended last come first, and of those that are waiting, the ones with a further attempt come
// first, the next one first.
func (o *Outbox) Notifications(ctx context.Context, client string, q sent.Query) (sent.Page, error) {
	page, err := o.tables.view(ctx, client, q)
	if err != nil {
		return sent.Page{}, fmt.Errorf("outbox: notifications: %w", err)
	}
	return page, nil
}

func checkQuery(q sent.Query) error {
	switch {
	case q.Limit < 1 || q.Limit > maxLimit:
		return fmt.Errorf("%w: the limit is %d, want 1 to %d", webhookcfg.ErrInvalidArgument, q.Limit, maxLimit)
	case q.State != "" && !slices.Contains(viewStates[:], q.State):
		return fmt.Errorf("%w: %q is not a state", webhookcfg.ErrInvalidArgument, q.State)
	}
	return nil
}

// Notification implements [sent.Queue].
func (o *Outbox) Notification(ctx context.Context, client, id string) (n sent.Notification, err error) {
	v := values{"client": []byte(client), "id": id}
	err = query(ctx, o.tables.db, o.tables.fixed(viewOne), v, func(rows *sql.Rows) error {
		var r viewed
		if err := rows.Scan(r.fields(&n.ContentType, &n.Body)...); err != nil {
			return err
		}
		shown := r.notification()
		shown.ContentType, shown.Body = n.ContentType, n.Body
		n = shown
		return nil
	})
	if err == nil && n.ID == "" {
		err = sent.ErrNotFound
	}
	if err != nil {
		return sent.Notification{}, fmt.Errorf("outbox: notification: %w", err)
	}
	return n, nil
}

const (
	viewColumns = `SELECT seq, id, entity, state, due, enqueued, attempts, reason, history`

	viewOne = viewColumns + `, content_type, body FROM {message} WHERE client = @client AND id = @id`
)

// viewed is a row of a list that clients see.
type viewed struct {
	position
	id, entity []byte
	state      int
	enqueued   int64
	attempts   int
	reason     string
	history    string
}

func (r *viewed) fields(more ...any) []any {
	return append([]any{&r.seq, &r.id, &r.entity, &r.state, &r.due, &r.enqueued, &r.attempts, &r.reason, &r.history}, more...)
}

// notification returns what the client may see.
func (r *viewed) notification() sent.Notification {
	n := sent.Notification{
		ID: string(r.id), Entity: string(r.entity), State: viewStates[r.state], Reason: publicReason(deliver.Reason(r.reason)),
		Made: time.UnixMicro(r.enqueued), Attempts: r.attempts, History: parseHistory(r.history),
	}
	if r.state == stateWaiting && r.due > 0 {
		n.Due = time.UnixMicro(r.due)
	}
	return n
}

// viewStates are the words for the states in the tables.
var viewStates = [...]string{
	stateFresh: "waiting", stateWaiting: "waiting", stateDelivered: "delivered", stateGivenUp: "given_up", stateDropped: "dropped",
}

// publicReason returns the word for a reason that a client may see.
func publicReason(r deliver.Reason) string {
	if r == deliver.ReasonNoWebhook || r == deliver.ReasonOff || r == deliver.ReasonStopped {
		return string(r)
	}
	return r.Public()
}

// A list is a row of ranges of an index.
const (
	newestFirst = ` FROM {message} WHERE client = @client AND seq < @seq ORDER BY seq DESC LIMIT @limit`
	ofEntity    = ` FROM {message} WHERE client = @client AND entity = @entity AND state = @state AND seq < @seq ORDER BY seq DESC LIMIT @limit`
	endedLast   = ` FROM {message} WHERE state = @state AND client = @client AND due <= @due AND (due < @due OR seq < @seq) ORDER BY due DESC, seq DESC LIMIT @limit`
	nextRetry   = ` FROM {message} WHERE state = @state AND client = @client AND due >= @due AND (due > @due OR seq > @seq) ORDER BY due, seq LIMIT @limit`
	unattempted = ` FROM {message} WHERE state = @state AND client = @client AND due = 0 AND seq < @seq ORDER BY seq DESC LIMIT @limit`
)

// viewRange is a part of a list: rows in the order of an index.
type viewRange struct {
	from  string
	state int
	start position
}

// ofStates returns a range of an entity's notifications in some states. It takes their numbers
// from the index, and reads only those that it returns.
func ofStates(first, last int) string {
	var all []string
	for state := first; state <= last; state++ {
		all = append(all, `SELECT * FROM (SELECT seq`+strings.Replace(ofEntity, "@state", strconv.Itoa(state), 1)+`) s`+strconv.Itoa(state))
	}
	return ` FROM {message} WHERE seq IN (SELECT seq FROM (SELECT seq FROM (` + strings.Join(all, ` UNION ALL `) + `) q ORDER BY seq DESC LIMIT @limit) p) ORDER BY seq DESC`
}

var (
	farthest   = position{never, never}
	firstRetry = position{due: 1}
)

// viewRanges returns the ranges that have the notifications of a query, in order.
func viewRanges(q sent.Query) []viewRange {
	state := slices.Index(viewStates[:], q.State)
	switch {
	case q.State == "" && q.Entity == "":
		return []viewRange{{newestFirst, 0, farthest}}
	case q.State == "":
		return []viewRange{{ofStates(stateFresh, stateDropped), 0, farthest}}
	case q.Entity != "" && state == stateFresh:
		return []viewRange{{ofStates(stateFresh, stateWaiting), 0, farthest}}
	case q.Entity != "":
		return []viewRange{{ofEntity, state, farthest}}
	case state == stateFresh:
		return []viewRange{{nextRetry, stateWaiting, firstRetry}, {unattempted, stateFresh, farthest}, {unattempted, stateWaiting, farthest}}
	default:
		return []viewRange{{endedLast, state, farthest}}
	}
}

// place is where a page ended: at one of the client's notifications. It says nothing that the client
// doesn't see anyway. The sequence in the tables would tell how many others have enqueued, and the
// time at which a notification ended how long the receiver took to refuse it.
type place struct {
	Range int    `json:"r,omitempty"`
	ID    string `json:"i"`
	Due   int64  `json:"d,omitempty"` // of the next attempt, in seconds
}

// String returns the Next of a page.
func (p place) String() string {
	text, _ := json.Marshal(p) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

var errPlace = fmt.Errorf("%w: After is not the Next of a page, or its last notification is gone", webhookcfg.ErrInvalidArgument)

func parsePlace(after string, ranges int) (p place, err error) {
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.ID == "" || p.Range < 0 || p.Range >= ranges {
		return place{}, errPlace
	}
	return p, nil
}

const viewPlace = `SELECT seq, due, state FROM {message} WHERE client = @client AND id = @id`

// find returns the position of the notification at which a page of a range has ended.
func (t *tables) find(ctx context.Context, client string, r viewRange, p place) (at position, err error) {
	at, err = position{}, errPlace
	queryErr := query(ctx, t.db, t.fixed(viewPlace), values{"client": []byte(client), "id": p.ID}, func(rows *sql.Rows) error {
		var row viewed
		scanErr := rows.Scan(&row.seq, &row.due, &row.state)
		at, err = r.after(row, p.Due), nil
		return scanErr
	})
	return at, cmp.Or(queryErr, err)
}

// after returns where a range goes on after a notification, which can have left it since.
func (r viewRange) after(last viewed, due int64) position {
	switch {
	case r.from == nextRetry && (last.state != stateWaiting || last.due == 0 || last.due/1e6 != due):
		return position{max(due*1e6, r.start.due), 0} // with those of the same second once more
	case r.from == endedLast && last.state != r.state:
		return r.start // it was sent again, and so were those before it, perhaps
	}
	return last.position
}

func (t *tables) view(ctx context.Context, client string, q sent.Query) (page sent.Page, err error) {
	if err := checkQuery(q); err != nil {
		return sent.Page{}, err
	}
	ranges := viewRanges(q)
	from, start := place{}, ranges[0].start
	if q.After != "" {
		if from, err = parsePlace(q.After, len(ranges)); err == nil {
			start, err = t.find(ctx, client, ranges[from.Range], from)
		}
		if err != nil {
			return sent.Page{}, err
		}
	}
	for i := from.Range; i < len(ranges); i++ {
		r := ranges[i]
		if i > from.Range {
			start = r.start
		}
		var last viewed
		v := values{"client": []byte(client), "entity": []byte(q.Entity), "state": r.state, "due": start.due, "seq": start.seq, "limit": q.Limit - len(page.Notifications)}
		err := query(ctx, t.db, t.fixed(viewColumns+r.from), v, func(rows *sql.Rows) error {
			last = viewed{}
			err := rows.Scan(last.fields()...)
			page.Notifications = append(page.Notifications, last.notification())
			return err
		})
		if err != nil {
			return sent.Page{}, err
		}
		if len(page.Notifications) == q.Limit {
			next := place{Range: i, ID: string(last.id)}
			if r.from == nextRetry {
				next.Due = last.due / 1e6
			}
			page.Next = next.String()
			return page, nil
		}
	}
	return page, nil
}

// attemptText is an attempt in a history.
func attemptText(started time.Time, reason deliver.Reason) string {
	return " " + strconv.FormatInt(started.Unix(), 16) + ":" + string(reason)
}

// parseHistory returns the attempts in a history. The start of a long one is cut off.
func parseHistory(text string) (all []sent.Attempt) {
	_, text, _ = strings.Cut(text, " ")
	for part := range strings.FieldsSeq(text) {
		started, reason, _ := strings.Cut(part, ":")
		seconds, err := strconv.ParseInt(started, 16, 64)
		if err != nil {
			continue
		}
		public := publicReason(deliver.Reason(reason))
		if reason != "" && public == "" {
			public = string(deliver.ReasonStatus) // the receiver was called, and hasn't accepted it
		}
		all = append(all, sent.Attempt{Started: time.Unix(seconds, 0), Reason: public})
	}
	return all
}
