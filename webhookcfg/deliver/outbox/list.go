package outbox

import (
	"bytes"
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
	// Entries are sorted by client. Within a client, those without an attempt come first, and
	// the others are sorted by Due, the earliest first.
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
	Client []byte `json:"c"`
	Part   int    `json:"p,omitempty"`
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
		if err != nil || at.Part < 0 || at.Part >= len(q.State.parts()) || q.Client != "" && string(at.Client) != q.Client {
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
	parts := q.State.parts()
	for {
		for ; len(at.Client) > 0 && at.Part < len(parts); at = (cursor{Client: at.Client, Part: at.Part + 1, Due: -1}) {
			v := values{"state": parts[at.Part], "client": at.Client, "due": at.Due, "seq": at.Seq, "limit": q.Limit - len(page.Entries)}
			err := query(ctx, t.db, entries, v, func(rows *sql.Rows) error {
				var e Entry
				var client, entity []byte
				var enqueued int64
				if err := rows.Scan(&client, &entity, &e.ID, &enqueued, &at.Due, &e.Attempts, &e.Status, &e.Reason, &at.Seq); err != nil {
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
		next, err := t.clientAfter(ctx, parts, at.Client)
		if err != nil || next == nil {
			return page, err
		}
		at = cursor{Client: next, Due: -1}
	}
}

// clientAfter returns the next client that has notifications in one of some states, or nil.
func (t *tables) clientAfter(ctx context.Context, states []int, after []byte) (next []byte, err error) {
	s := t.compile(listNextClient)
	for _, state := range states {
		err := query(ctx, t.db, s, values{"state": state, "client": after}, func(rows *sql.Rows) error {
			var found []byte
			err := rows.Scan(&found)
			if next == nil || bytes.Compare(found, next) < 0 {
				next = found
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}
