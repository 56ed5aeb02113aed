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
	// Entries are sorted by client, and within a client by Due, the earliest first.
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
	// Due is when it's due if it's waiting. It's Enqueued if there was no attempt. Otherwise
	// it's when the notification ended.
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
	Part   int    `json:"p,omitempty"`
	Client []byte `json:"c"`
	Due    int64  `json:"d"`
	Seq    int64  `json:"s"`
}

const listEntries = `
SELECT client, entity, id, enqueued, due, attempts, status, reason, seq FROM {message} WHERE state = @state AND client = @client AND `

const listNextClient = `
SELECT client FROM {message} WHERE state = @state AND client > @client ORDER BY client LIMIT 1`

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
	at := cursor{Client: []byte(q.Client), Due: -1}
	if q.After != "" {
		text, err := base64.RawURLEncoding.DecodeString(q.After)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil || q.Client != "" && string(at.Client) != q.Client {
			return Page{}, errors.New("outbox: list: After is not the Next of a page of this list")
		}
	}
	page, err := o.tables.list(ctx, q, at)
	if err != nil {
		return Page{}, fmt.Errorf("outbox: list: %w", err)
	}
	return page, nil
}

// parts are the state numbers of a state in the tables.
func (s State) parts() []int {
	if s == Waiting {
		return []int{stateFresh, stateWaiting}
	}
	return []int{int(s)}
}

func (t *tables) list(ctx context.Context, q Query, at cursor) (page Page, err error) {
	entries := t.compile(listEntries + t.engine.after() + ` ORDER BY due, seq LIMIT @limit`)
	next := t.compile(listNextClient)
	for parts := q.State.parts(); at.Part < len(parts); at = (cursor{Part: at.Part + 1, Client: []byte(q.Client), Due: -1}) {
		for {
			if len(at.Client) > 0 {
				v := values{"state": parts[at.Part], "client": at.Client, "due": at.Due, "seq": at.Seq, "limit": q.Limit - len(page.Entries)}
				err := query(ctx, t.db, entries, v, func(rows *sql.Rows) error {
					var e Entry
					var client, entity []byte
					var enqueued, due int64
					if err := rows.Scan(&client, &entity, &e.ID, &enqueued, &due, &e.Attempts, &e.Status, &e.Reason, &at.Seq); err != nil {
						return err
					}
					at.Due = due
					e.Client, e.Entity, e.State = string(client), string(entity), q.State
					e.Enqueued = time.UnixMicro(enqueued)
					e.Due = time.UnixMicro(max(due, enqueued))
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
				if q.Client != "" {
					break
				}
			}
			var found []byte
			v := values{"state": parts[at.Part], "client": at.Client}
			if err := query(ctx, t.db, next, v, func(rows *sql.Rows) error { return rows.Scan(&found) }); err != nil {
				return Page{}, err
			}
			if found == nil {
				break
			}
			at.Client, at.Due, at.Seq = found, -1, 0
		}
	}
	return page, nil
}
