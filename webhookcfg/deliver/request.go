package deliver

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// isFieldValue reports whether text may be the value of a header field: printable ASCII
// without a blank at either end.
func isFieldValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text == strings.TrimSpace(text)
}

// request returns the request of one attempt, signed with the keys.
func (m Message) request(ctx context.Context, url egress.URL, keys []Key, at time.Time, userAgent string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url.Reveal(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, egress.RedactError(err)
	}
	contentType := m.ContentType
	if contentType == "" {
		contentType = jsonType
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	r.Header = http.Header{
		"Content-Type":      {contentType},
		"User-Agent":        {userAgent},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {signatures(m.ID, timestamp, m.Body, keys)},
		// Not sent. It allows net/http to repeat the request if the receiver closes an idle
		// connection just as it's used. The ID makes that harmless.
		"Idempotency-Key": nil,
	}
	return r, nil
}
