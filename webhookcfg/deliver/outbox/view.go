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
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

var _ sent.Queue = (*Outbox)(nil)

// Notifications implements [sent.Queue]. A page reads as many rows as it has,
// in order of an index. Those of a State, without an Entity, are in another order: the ones that
// ended last come first. Of those that wait, new ones come first, then those that were sent again,
// and then webhook by webhook those that wait for it, the next one first.
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
	v := values{"client": []byte(client), "base": []byte(""), "id": id}
	err = o.tables.Query(ctx, o.tables.DB, viewOne, v, func(rows *sql.Rows) error {
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
	viewColumns = `SELECT seq, id, entity, state, grp, due, enqueued, attempts, reason, history, ` + pauseEnds

	// pauseEnds is the end of the pause of the base or the override that a notification waits for, or 0
	// if there's none. Its line.Group says which. It can have been set again since, and pause again.
	pauseEnds = `COALESCE((SELECT ends FROM {pause} WHERE client = @client AND entity = CASE WHEN grp & 2 = 0 THEN @base ELSE {message}.entity END), 0)`

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
	pauseEnds  int64
}

func (r *viewed) fields(more ...any) []any {
	return append([]any{&r.Seq, &r.id, &r.entity, &r.state, &r.Group, &r.Due, &r.enqueued, &r.attempts, &r.reason, &r.history, &r.pauseEnds}, more...)
}

// notification returns what the client may see.
func (r *viewed) notification() sent.Notification {
	n := sent.Notification{
		ID: string(r.id), Entity: string(r.entity), State: viewStates[r.state], Reason: publicReason(deliver.Reason(r.reason)),
		Made: time.UnixMicro(r.enqueued), Attempts: r.attempts, History: parseHistory(r.history),
	}
	if r.state == queue.Waiting && r.attempts > 0 {
		n.Due = time.UnixMicro(max(r.Due, r.pauseEnds))
	}
	return n
}

// viewStates are the words for the states in the tables.
var viewStates = [...]string{
	queue.Waiting: "waiting", queue.Delivered: "delivered", queue.GivenUp: "given_up", queue.Dropped: "dropped",
}

// publicReason returns the word for a reason that a client may see.
func publicReason(r deliver.Reason) string {
	if r == deliver.ReasonNoWebhook || r == deliver.ReasonOff || r == deliver.ReasonStopped {
		return string(r)
	}
	return r.Public()
}

// A list is a range of an index.
const (
	newestFirst = ` FROM {message} WHERE client = @client AND seq < @seq ORDER BY seq DESC LIMIT @limit`
	ofEntity    = ` FROM {message} WHERE client = @client AND entity = @entity AND state = @state AND seq < @seq ORDER BY seq DESC LIMIT @limit`
	endedLast   = ` FROM {message} WHERE state = @state AND client = @client AND grp = 0 AND due <= @due AND (due < @due OR seq < @seq) ORDER BY due DESC, seq DESC LIMIT @limit`
)

// ofAllStates is a range of an entity's notifications in all states. It takes their numbers from the
// index, and reads only those that it returns.
var ofAllStates = func() string {
	var all []string
	for state := queue.Waiting; state <= queue.Dropped; state++ {
		all = append(all, `SELECT * FROM (SELECT seq`+strings.Replace(ofEntity, "@state", strconv.Itoa(state), 1)+`) s`+strconv.Itoa(state))
	}
	return ` FROM {message} WHERE seq IN (SELECT seq FROM (SELECT seq FROM (` + strings.Join(all, ` UNION ALL `) + `) q ORDER BY seq DESC LIMIT @limit) p) ORDER BY seq DESC`
}()

// viewRange returns the range that has the notifications of a query, and where it starts.
func viewRange(q sent.Query) (from string, start position) {
	switch {
	case q.State == "" && q.Entity == "":
		return newestFirst, last
	case q.State == "":
		return ofAllStates, last
	case q.Entity != "":
		return ofEntity, last
	case q.State == viewStates[queue.Waiting]:
		return inOrder, first
	default:
		return endedLast, last
	}
}

// place is where a page ended: at one of the client's notifications. It says nothing that the client
// doesn't see anyway. The sequence in the tables would tell how many others have enqueued, and the
// time at which a notification ended how long the receiver took to refuse it.
type place struct {
	ID    string `json:"i"`
	Group int64  `json:"g,omitempty"` // when its webhook was set
	Due   int64  `json:"d,omitempty"` // of the next attempt, in seconds
}

// String returns the Next of a page.
func (p place) String() string {
	text, _ := json.Marshal(p) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

var errPlace = fmt.Errorf("%w: After is not the Next of a page, or its last notification is gone", webhookcfg.ErrInvalidArgument)

func parsePlace(after string) (p place, err error) {
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.ID == "" {
		return place{}, errPlace
	}
	return p, nil
}

// find returns where a range goes on after the notification at which a page has ended, which can have
// left the range since.
func (t *tables) find(ctx context.Context, client, from string, q sent.Query, p place) (at position, err error) {
	var row viewed
	isKnown := false
	err = t.Query(ctx, t.DB, viewColumns+` FROM {message} WHERE client = @client AND id = @id`, values{"client": []byte(client), "base": []byte(""), "id": p.ID}, func(rows *sql.Rows) error {
		isKnown = true
		return rows.Scan(row.fields()...)
	})
	switch {
	case err != nil:
		return position{}, err
	case !isKnown:
		return position{}, errPlace
	case from == inOrder && (row.state != queue.Waiting || row.Group != p.Group || row.Due/1e6 != p.Due):
		return position{p.Group, p.Due * 1e6, -1}, nil // with those of the same second once more
	case from == endedLast && viewStates[row.state] != q.State:
		return last, nil // it was sent again, and so were those before it, perhaps
	}
	return row.position, nil
}

func (t *tables) view(ctx context.Context, client string, q sent.Query) (page sent.Page, err error) {
	if err := checkQuery(q); err != nil {
		return sent.Page{}, err
	}
	from, start := viewRange(q)
	if q.After != "" {
		p, err := parsePlace(q.After)
		if err == nil {
			start, err = t.find(ctx, client, from, q, p)
		}
		if err != nil {
			return sent.Page{}, err
		}
	}
	v := start.values(q.Limit)
	v["client"], v["base"], v["entity"], v["state"] = []byte(client), []byte(""), []byte(q.Entity), slices.Index(viewStates[:], q.State)
	var row viewed
	err = t.Query(ctx, t.DB, viewColumns+from, v, func(rows *sql.Rows) error {
		row = viewed{}
		err := rows.Scan(row.fields()...)
		page.Notifications = append(page.Notifications, row.notification())
		return err
	})
	if err == nil && len(page.Notifications) == q.Limit {
		next := place{ID: string(row.id)}
		if from == inOrder {
			next.Group, next.Due = row.Group, row.Due/1e6
		}
		page.Next = next.String()
	}
	return page, err
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
