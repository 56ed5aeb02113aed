package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// module is an entity of this service. Its client wants to know when it changes.
type module struct {
	client, id string
	state      []byte
}

// Both databases understand these statements. A version is the time of the change in microseconds,
// or one more than the last version if that isn't later. A module that a restored backup doesn't
// have, or only with an earlier state, then goes on above all versions that receivers have seen.
const (
	createModules = `CREATE TABLE IF NOT EXISTS modules (
	client text NOT NULL, id text NOT NULL, state bytea NOT NULL, version bigint NOT NULL,
	PRIMARY KEY (client, id))`
	updateModule = `INSERT INTO modules (client, id, state, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (client, id) DO UPDATE SET state = excluded.state,
	version = CASE WHEN excluded.version > modules.version THEN excluded.version ELSE modules.version + 1 END RETURNING version`
	findModule = `SELECT count(*) FROM modules WHERE client = $1 AND id = $2`
)

// signedIn calls next with the client that has signed in. If nobody has, it responds as the
// webhooks' handler does.
func signedIn(h *webhookcfg.Handler, next func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		client, err := h.SignIn(r.Context(), id, secret)
		if refusal, ok := errors.AsType[*webhookcfg.Error](err); ok {
			refusal.ServeHTTP(w, r)
			return
		}
		// IDs are stored and logged, so the webhooks' handler refuses a secret in one, and so do we.
		for _, id := range []string{r.PathValue("id"), r.URL.Query().Get("endpoint_id")} {
			if len(secret) >= 8 && strings.Contains(id, secret) {
				http.Error(w, "the ID contains your secret", http.StatusBadRequest)
				return
			}
		}
		next(w, r, client.ID)
	}
}

// moduleID is the syntax of a module's ID. The webhooks' handler accepts all of these as
// entity identifiers. A module with another ID couldn't have a webhook.
var moduleID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// putModule changes a module. If it responds 200, the notification will be sent.
func (s *service) putModule(w http.ResponseWriter, r *http.Request, client string) {
	id := r.PathValue("id")
	if !moduleID.MatchString(id) {
		http.Error(w, "want an ID of 1 to 64 of the characters A-Z a-z 0-9 _ -", http.StatusBadRequest)
		return
	}
	state, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		http.Error(w, "want at most 64 KiB", http.StatusBadRequest)
		return
	}
	version, err := s.update(r.Context(), module{client, id, state})
	if err != nil {
		s.unavailable(w, r, "can't update a module", "client", client, "error", err)
		return
	}
	respond(w, map[string]int64{"version": version})
}

// update changes a module and enqueues its notification, in one transaction. If it returns
// nil, both are durable. If the process is killed before that, you have neither, or both if
// only the response was lost.
func (s *service) update(ctx context.Context, m module) (version int64, err error) {
	tx, err := s.database.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if err := tx.QueryRowContext(ctx, updateModule, m.client, m.id, m.state, time.Now().UnixMicro()).Scan(&version); err != nil {
		return 0, err
	}
	if err := s.queue.Enqueue(ctx, tx, m.changed(version)); err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	s.queue.Committed(m.client)
	return version, nil
}

// getKey returns the key that the client's receivers verify with, or the one that verifies the
// notifications of a module, if the query names one. It refuses a query that only seems to.
func (s *service) getKey(h *webhookcfg.Handler) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, r *http.Request, client string) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		ids := query["endpoint_id"]
		if err != nil || len(ids) > 1 || len(query) > len(ids) {
			http.Error(w, "want one endpoint_id in the query, or no query", http.StatusBadRequest)
			return
		}
		var id string
		var hook webhookcfg.Webhook
		if len(ids) == 1 {
			id = ids[0]
			hook, err = h.Read(r.Context(), client, id)
			if refusal, ok := errors.AsType[*webhookcfg.Error](err); ok {
				refusal.ServeHTTP(w, r)
				return
			}
		}
		key, err := deliver.SigningKey(s.keys)(r.Context(), client, id, hook)
		if err != nil {
			s.unavailable(w, r, "can't get the signing key", "client", client, "error", err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		respond(w, map[string]string{"key": key})
	}
}

// unavailable responds that a part of the service failed. It logs why, unless the client
// disconnected.
func (s *service) unavailable(w http.ResponseWriter, r *http.Request, message string, args ...any) {
	if r.Context().Err() == nil {
		s.logger.Error(message, args...)
	}
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}

func respond(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails only if the client disconnected
}

// exists reports whether a client has a module. If not, it can't set a webhook for it.
func (s *service) exists(ctx context.Context, client, id string) (bool, error) {
	var n int
	err := s.database.QueryRowContext(ctx, findModule, client, id).Scan(&n)
	return n > 0, err
}

// changed returns the notification of a change. Its body is thin: the receiver can fetch the
// state if it wants to. It should ignore a version below the one that it has, since
// notifications can arrive twice or out of order.
func (m module) changed(version int64) outbox.Notification {
	body, err := json.Marshal(map[string]any{
		"type": "module.updated",
		"data": map[string]any{"id": m.id, "version": version},
	})
	if err != nil {
		panic(err) // can't happen: strings and numbers have a JSON form
	}
	return outbox.Notification{
		Client: m.client,
		Entity: m.id,
		Message: deliver.Message{
			ID:   deliver.MessageID(m.client, m.id, strconv.FormatInt(version, 10)), // one change, one ID
			Body: body,
		},
	}
}
