package webhookcfg

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// success is the body of each set and unset that succeeded.
var success = []byte(`{"message":"successful"}`)

// write writes all responses. With an empty scope, there is no Webhook-Scope field. The server
// sets Content-Length: a middleware that replaces the body couldn't know that it has to remove ours.
func write(w http.ResponseWriter, status int, body []byte, scope string) {
	header := w.Header()
	values := [...]string{"application/json", "no-store", "nosniff", scope}
	for i, key := range [...]string{"Content-Type", "Cache-Control", "X-Content-Type-Options", "Webhook-Scope"} {
		if values[i] != "" {
			header[key] = values[i : i+1 : i+1] // a middleware may append
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client disconnected
}

// webhookJSON is a webhook in a response to its owner. It has the whole URL.
type webhookJSON struct {
	EndpointID string        `json:"endpoint_id,omitempty"`
	MocID      string        `json:"moc_id,omitempty"`
	URL        *string       `json:"webhook_url"`
	Source     string        `json:"source,omitempty"`
	Since      *string       `json:"since"`
	Delivery   *deliveryJSON `json:"delivery,omitempty"`
}

// deliveryJSON says how the deliveries to a webhook go. No text in it comes from the
// receiver.
type deliveryJSON struct {
	State       string  `json:"state"`
	Reason      string  `json:"reason,omitempty"`
	LastSuccess *string `json:"last_success,omitempty"`
	LastFailure *string `json:"last_failure,omitempty"`
	PausedUntil *string `json:"paused_until,omitempty"`
}

type pageJSON struct {
	URL       *string       `json:"webhook_url"`
	Since     *string       `json:"since"`
	Overrides []webhookJSON `json:"overrides"`
	Next      string        `json:"next,omitempty"`
}

func newWebhookJSON(idKey, entity string, hook Webhook) webhookJSON {
	shown := webhookJSON{URL: urlJSON(hook.URL), Since: timeJSON(hook.Since)}
	if idKey == mocID {
		shown.MocID = entity
	} else {
		shown.EndpointID = entity
	}
	return shown
}

// newDeliveryJSON returns nil if nothing is known.
func newDeliveryJSON(d DeliveryStatus) *deliveryJSON {
	if d.State == "" {
		return nil
	}
	return &deliveryJSON{d.State, d.Reason, timeJSON(d.LastSuccess), timeJSON(d.LastFailure), timeJSON(d.PausedUntil)}
}

func newPageJSON(idKey string, page Page) pageJSON {
	shown := pageJSON{
		URL:       urlJSON(page.Base.URL),
		Since:     timeJSON(page.Base.Since),
		Overrides: make([]webhookJSON, len(page.Overrides)),
		Next:      page.Next,
	}
	for i, o := range page.Overrides {
		shown.Overrides[i] = newWebhookJSON(idKey, o.Entity, o.Webhook)
	}
	return shown
}

func urlJSON(u egress.URL) *string {
	if u.IsZero() {
		return nil
	}
	text := u.Reveal()
	return &text
}

func timeJSON(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(time.RFC3339)
	return &text
}

// marshal is json.Marshal without the escapes for HTML, since they make a URL with an
// ampersand hard to read.
func marshal(v any) ([]byte, *apiError) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, serverError(err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// respond writes the response: an error, or the result.
func (q *request) respond(e *apiError) {
	switch {
	case e == nil:
		write(q.w, http.StatusOK, q.result, q.scopeField())
	case e.isAbort():
		panic(http.ErrAbortHandler) // not the wrapped value, since net/http only recognizes this one
	default:
		q.h.newError(e, nil).ServeHTTP(q.w, q.r)
	}
}

// scopeField returns the Webhook-Scope field for a change. A client whose identifier got lost
// can see there that its change reached all entities. It's "" for a read.
func (q *request) scopeField() string {
	switch {
	case q.event.Operation != opSet && q.event.Operation != opUnset:
		return ""
	case q.event.Scope.IsAll():
		return "all"
	default:
		return "entity"
	}
}
