package webhookcfg

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// success is the whole body of every set and unset that was done.
var success = []byte(`{"message":"successful"}`)

// respond writes the response of a request that reached an operation, and reports
// its event.
func (x *exchange) respond(ctx context.Context, body []byte, e *apiError) {
	if e == nil {
		x.event.Status, x.responded = http.StatusOK, true
		write(x.w, http.StatusOK, body)
	} else {
		x.event.Err = x.redactedError(e.cause) // may panic in the cause, so before anything is written
		x.event.Status, x.event.Code, x.responded = e.status(), errorTable[e.code].name, true
		x.h.refuse(x.w, e)
	}
	x.report(ctx)
}

// write is the only writer of responses.
func write(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	// One allocation for all of them, where Header.Set makes one for each.
	values := [...]string{"application/json", strconv.Itoa(len(body)), "no-store", "nosniff"}
	header["Content-Type"] = values[0:1:1]
	header["Content-Length"] = values[1:2:2]
	header["Cache-Control"] = values[2:3:3]
	header["X-Content-Type-Options"] = values[3:4:4]
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that is gone cannot be told
}

// refuse writes a fault.
func (h *Handler) refuse(w http.ResponseWriter, e *apiError) {
	header := w.Header()
	if e.code == codeInvalidClient {
		header.Set("WWW-Authenticate", h.challenge)
	}
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.retryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(e.retryAfter))
	}
	write(w, e.status(), e.body())
}

// body is the JSON of a fault. Its parts need no escaping: the names and the
// descriptions keep to the characters of RFC 6749 §5.2.
func (e *apiError) body() []byte {
	body := make([]byte, 0, 192)
	body = append(body, `{"error":"`...)
	body = append(body, errorTable[e.code].name...)
	body = append(body, `","error_description":"`...)
	body = append(body, e.description...)
	return append(body, `"}`...)
}

// wholeSeconds is a Retry-After: never sooner than the wait that was asked for.
func wholeSeconds(d time.Duration) string {
	seconds := d / time.Second
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(int64(seconds), 10)
}

// webhookJSON is a webhook as the reads show it, to its owner and so in full.
type webhookJSON struct {
	EndpointID string  `json:"endpoint_id,omitempty"`
	MocID      string  `json:"moc_id,omitempty"`
	URL        *string `json:"webhook_url"`
	Source     string  `json:"source,omitempty"`
	Since      *string `json:"since"`
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

// marshal is json.Marshal without the escapes for HTML, which would make a URL
// with an ampersand hard to read.
func marshal(v any) ([]byte, *apiError) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, serverError(err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
