package outbox

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// Query says what [Outbox.List] returns.
type Query struct {
	// State is the state of the notifications. It must be set.
	State State

	// Client is whose notifications to list. Empty means those of all clients, client by
	// client.
	Client string

	// After continues a list: it's the Next of the [Page] before. Empty means from the start.
	After string

	// Limit is the maximum number of entries. Zero means 100, and the maximum is 1,000.
	Limit int
}

// Page is a part of a list.
type Page struct {
	// Entries are sorted by client. Of those that wait for a client, new ones come first, then those that
	// were sent again, and then webhook by webhook those that wait for it, the earliest Due first. Those
	// that have ended are sorted by Due.
	Entries []Entry

	// Next is the After of the next page. It's empty if this is the last one.
	Next string
}

// Entry is a notification in a list.
type Entry struct {
	// Client and Entity are those of the [Notification].
	Client, Entity string
	// ID is that of its message.
	ID string
	// State is where it stands.
	State State
	// Enqueued is when it was enqueued.
	Enqueued time.Time
	// Due is when it's due if it's waiting: Enqueued if nobody has tried, and when it was sent again if that's
	// later. Otherwise it's when the notification ended.
	Due time.Time
	// Attempts is how many attempts were made.
	Attempts int
	// Status and Reason are those of the last attempt, as in [deliver.Result].
	Status int
	Reason deliver.Reason
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// cursor is a place in a list.
type cursor struct {
	State  State  `json:"t"`
	Client []byte `json:"c"`
	position
}

// position is where a notification stands in the index of its client's state.
type position struct {
	Group int64 `json:"g"`
	Due   int64 `json:"d"`
	Seq   int64 `json:"s"`
}

// first is before all positions, and last after them.
var (
	first = position{-1, -1, -1}
	last  = position{1 << 62, 1 << 62, 1 << 62}
)

const (
	// inOrder are the notifications of a client in a state after a position, in the order of the index.
	inOrder = ` FROM {message} WHERE state = @state AND client = @client AND grp >= @grp AND (grp > @grp OR due > @due OR due = @due AND seq > @seq) ORDER BY grp, due, seq LIMIT @limit`

	listEntries = `SELECT client, entity, id, enqueued, grp, due, attempts, status, reason, seq` + inOrder

	listNextClient = `SELECT client FROM {message} WHERE state = @state AND client > @client ORDER BY client LIMIT 1`
)

// List returns notifications in a state. It reads about as many rows as it returns, however
// many there are, in order of an index. So a list of many pages isn't a snapshot.
func (o *Outbox) List(ctx context.Context, q Query) (Page, error) {
	if q.State < Waiting || q.State > Dropped {
		return Page{}, fmt.Errorf("outbox: list: %v is not a state", q.State)
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return Page{}, fmt.Errorf("outbox: list: the limit is %d, want up to %d", q.Limit, maxLimit)
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	at := cursor{q.State, []byte(q.Client), first}
	if q.After != "" {
		text, err := base64.RawURLEncoding.DecodeString(q.After)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil || at.State != q.State || q.Client != "" && string(at.Client) != q.Client {
			return Page{}, errors.New("outbox: list: After is not the Next of a page of this list")
		}
	}
	page, err := o.tables.list(ctx, q, at)
	if err != nil {
		return Page{}, fmt.Errorf("outbox: list: %w", err)
	}
	return page, nil
}

// number returns the number of a state in the tables.
func (s State) number() int {
	return [...]int{Waiting: queue.Waiting, Delivered: queue.Delivered, GivenUp: queue.GivenUp, Dropped: queue.Dropped}[s]
}

func (t *tables) list(ctx context.Context, q Query, at cursor) (page Page, err error) {
	for {
		if len(at.Client) > 0 {
			v := at.values(q.Limit - len(page.Entries))
			v["state"], v["client"] = q.State.number(), at.Client
			err := t.Query(ctx, t.DB, listEntries, v, func(rows *sql.Rows) error {
				var e Entry
				var client, entity []byte
				var enqueued int64
				if err := rows.Scan(&client, &entity, &e.ID, &enqueued, &at.Group, &at.Due, &e.Attempts, &e.Status, &e.Reason, &at.Seq); err != nil {
					return err
				}
				e.Client, e.Entity, e.State = string(client), string(entity), q.State
				e.Enqueued = time.UnixMicro(enqueued)
				e.Due = time.UnixMicro(max(at.Due, enqueued))
				page.Entries = append(page.Entries, e)
				return nil
			})
			if err != nil {
				return Page{}, err
			}
			if len(page.Entries) == q.Limit {
				text, err := json.Marshal(at)
				page.Next = base64.RawURLEncoding.EncodeToString(text)
				return page, err
			}
		}
		if q.Client != "" {
			return page, nil
		}
		var next []byte
		v := values{"state": q.State.number(), "client": at.Client}
		if err := t.Query(ctx, t.DB, listNextClient, v, func(rows *sql.Rows) error { return rows.Scan(&next) }); err != nil || next == nil {
			return page, err
		}
		at = cursor{q.State, next, first}
	}
}

// values returns the parameters of a position.
func (p position) values(limit int) values {
	return values{"grp": p.Group, "due": p.Due, "seq": p.Seq, "limit": limit}
}
