package outbox

import (
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
)

var _ webhookcfg.NotificationQueue = (*Outbox)(nil)

// viewLimit is how many rows a page looks at for those that it shows.
const viewLimit = 500

// Notifications implements [webhookcfg.NotificationQueue]. Pages without a State have the
// notifications that were enqueued last first. Of those that are waiting, the ones with a
// further attempt come first, the next one first. A page looks at 500 notifications at most,
// so it can have fewer than its limit.
func (o *Outbox) Notifications(ctx context.Context, client string, q webhookcfg.NotificationQuery) (webhookcfg.NotificationPage, error) {
	at, err := parsePlace(q.After)
	if err == nil {
		var page webhookcfg.NotificationPage
		if page, err = o.tables.view(ctx, client, q, at); err == nil {
			return page, nil
		}
	}
	return webhookcfg.NotificationPage{}, fmt.Errorf("outbox: notifications: %w", err)
}

// Notification implements [webhookcfg.NotificationQueue].
func (o *Outbox) Notification(ctx context.Context, client, id string) (n webhookcfg.Notification, err error) {
	v := values{"client": []byte(client), "id": id}
	err = query(ctx, o.tables.db, o.tables.fixed(viewOne), v, func(rows *sql.Rows) error {
		var r viewed
		var history string
		if err := rows.Scan(r.fields(&history, &n.ContentType, &n.Body)...); err != nil {
			return err
		}
		shown := r.notification()
		shown.ContentType, shown.Body, shown.History = n.ContentType, n.Body, parseHistory(history)
		n = shown
		return nil
	})
	if err == nil && n.ID == "" {
		err = webhookcfg.ErrNoNotification
	}
	if err != nil {
		return webhookcfg.Notification{}, fmt.Errorf("outbox: notification: %w", err)
	}
	return n, nil
}

const (
	viewColumns = `SELECT seq, id, entity, state, due, enqueued, attempts, reason`

	viewOne = viewColumns + `, history, content_type, body FROM {message} WHERE client = @client AND id = @id`
)

// viewed is a row of a list that clients see.
type viewed struct {
	position
	id, entity []byte
	state      int
	enqueued   int64
	attempts   int
	reason     string
}

func (r *viewed) fields(more ...any) []any {
	return append([]any{&r.seq, &r.id, &r.entity, &r.state, &r.due, &r.enqueued, &r.attempts, &r.reason}, more...)
}

// notification returns what the client may see.
func (r *viewed) notification() webhookcfg.Notification {
	n := webhookcfg.Notification{
		ID: string(r.id), Entity: string(r.entity), State: viewStates[r.state], Reason: publicReason(deliver.Reason(r.reason)),
		Made: time.UnixMicro(r.enqueued), Attempts: r.attempts,
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
	if r == deliver.ReasonNoWebhook || r == deliver.ReasonStopped {
		return string(r)
	}
	return r.Public()
}

// A list is a row of ranges of an index.
const (
	newestFirst = ` FROM {message} WHERE client = @client AND seq < @seq ORDER BY seq DESC LIMIT @limit`
	ofEntity    = ` FROM {message} WHERE client = @client AND entity = @entity AND seq < @seq ORDER BY seq DESC LIMIT @limit`
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

var (
	farthest   = position{never, never}
	firstRetry = position{due: 1}
)

// viewRanges returns the ranges that have the notifications of a query, in order.
func viewRanges(q webhookcfg.NotificationQuery) []viewRange {
	state := slices.Index(viewStates[:], q.State)
	switch {
	case q.State == "" && q.Entity == "":
		return []viewRange{{newestFirst, 0, farthest}}
	case q.State == "", state == stateFresh && q.Entity != "":
		return []viewRange{{ofEntity, 0, farthest}}
	case state == stateFresh:
		return []viewRange{{nextRetry, stateWaiting, firstRetry}, {unattempted, stateFresh, farthest}, {unattempted, stateWaiting, farthest}}
	default:
		return []viewRange{{endedLast, state, farthest}}
	}
}

// place is where a page ended.
type place struct {
	Range int   `json:"r,omitempty"`
	Due   int64 `json:"d"`
	Seq   int64 `json:"s"`
}

// String returns the Next of a page.
func (p place) String() string {
	text, _ := json.Marshal(p) // numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// parsePlace returns where a list goes on, or nil if it starts.
func parsePlace(after string) (*place, error) {
	if after == "" {
		return nil, nil
	}
	p := new(place)
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil || p.Range < 0 {
		return nil, fmt.Errorf("%w: After is not the Next of a page", webhookcfg.ErrInvalidArgument)
	}
	return p, nil
}

func (t *tables) view(ctx context.Context, client string, q webhookcfg.NotificationQuery, at *place) (page webhookcfg.NotificationPage, err error) {
	ranges := viewRanges(q)
	if at == nil {
		at = &place{0, ranges[0].start.due, ranges[0].start.seq}
	}
	for at.Range < len(ranges) {
		isDone, err := t.viewRange(ctx, client, q, ranges[at.Range], at, &page)
		if err != nil {
			return webhookcfg.NotificationPage{}, err
		}
		if !isDone {
			page.Next = at.String()
			return page, nil
		}
		at = &place{Range: at.Range + 1}
		if at.Range < len(ranges) {
			at.Due, at.Seq = ranges[at.Range].start.due, ranges[at.Range].start.seq
		}
	}
	return page, nil
}

// viewRange adds the rows of a range to a page, and moves the place behind them. It reports
// whether the range has no others.
func (t *tables) viewRange(ctx context.Context, client string, q webhookcfg.NotificationQuery, r viewRange, at *place, page *webhookcfg.NotificationPage) (isDone bool, err error) {
	v := values{
		"client": []byte(client), "entity": []byte(q.Entity), "state": r.state, "due": at.Due, "seq": at.Seq,
		"limit": q.Limit - len(page.Notifications), "look": viewLimit,
	}
	template := viewColumns + r.from
	isFiltered := q.Entity != "" && q.State != ""
	if isFiltered { // the rows of one come in the order of the other
		inner := strings.Replace(template, "@limit", "@look", 1)
		template = viewColumns + ` FROM (` + inner + `) q WHERE entity = @entity AND state ` + map[bool]string{true: `< 2`, false: `= @state`}[q.State == viewStates[stateWaiting]] + ` LIMIT @limit`
	}
	before := *at
	err = query(ctx, t.db, t.fixed(template), v, func(rows *sql.Rows) error {
		var row viewed
		err := rows.Scan(row.fields()...)
		at.Due, at.Seq = row.due, row.seq
		page.Notifications = append(page.Notifications, row.notification())
		return err
	})
	if err != nil || len(page.Notifications) == q.Limit {
		return false, err
	}
	if !isFiltered {
		return true, nil
	}
	// We have looked at viewLimit rows, unless there are fewer.
	isDone = true
	v["limit"], v["skip"] = 1, viewLimit-1
	err = query(ctx, t.db, t.fixed(`SELECT due, seq`+r.from+` OFFSET @skip`), v, func(rows *sql.Rows) error {
		isDone, *at = false, before
		return rows.Scan(&at.Due, &at.Seq)
	})
	return isDone, err
}

// attemptText is an attempt in a history.
func attemptText(started time.Time, reason deliver.Reason) string {
	return " " + strconv.FormatInt(started.Unix(), 16) + ":" + string(reason)
}

// parseHistory returns the attempts in a history. The start of a long one is cut off.
func parseHistory(text string) (all []webhookcfg.NotificationAttempt) {
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
		all = append(all, webhookcfg.NotificationAttempt{Started: time.Unix(seconds, 0), Reason: public})
	}
	return all
}
