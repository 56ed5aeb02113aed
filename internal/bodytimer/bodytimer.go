// Package bodytimer limits how long a client can take to send the body of its request.
package bodytimer

import (
	"net/http"
	"sync"
	"time"
)

// Timer limits how long the client can take to send its body, even if the handler never
// reads it.
//
// It sets a read deadline only when the time is over, for two reasons. A deadline replaces
// any earlier one, which the server or a middleware may have set. And a deadline that passes
// after the body was read looks as if the client had disconnected.
//
// If the ResponseWriter doesn't support read deadlines, only the limits of its server apply.
// A request without a body has a nil timer, and its methods do nothing.
type Timer struct {
	w       http.ResponseWriter
	r       *http.Request
	timer   *time.Timer
	running sync.WaitGroup // for expire, which the timer calls
	active  bool           // the body hasn't been read
	late    bool           // the read deadline has been set
}

// New returns the timer of a request. The caller must call End.
func New(w http.ResponseWriter, r *http.Request, limit time.Duration) *Timer {
	if r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return nil // no body can arrive; see hasBody
	}
	if deadline, ok := r.Context().Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	b := &Timer{w: w, r: r, active: true}
	b.running.Add(1)
	b.timer = time.AfterFunc(limit, b.expire)
	return b
}

func (b *Timer) expire() {
	defer b.running.Done()
	b.late = http.NewResponseController(b.w).SetReadDeadline(time.Unix(1, 0)) == nil
}

// Stop ends the limit. After it returns, the timer sets no read deadline, since nothing may
// use the ResponseWriter after the handler has returned.
func (b *Timer) Stop() {
	if b == nil || !b.active {
		return
	}
	if b.timer.Stop() {
		b.running.Done()
	}
	b.running.Wait()
	b.active = false
}

// BeforeResponse reads the rest of the body while the time is still limited. Otherwise
// net/http would read it after the handler returns. If the connection closes after the
// response, End does it instead.
func (b *Timer) BeforeResponse() {
	if b == nil {
		return
	}
	if b.r.Header["Expect"] == nil && b.w.Header()["Connection"] == nil {
		b.closeBody()
	}
	if !b.active && b.late && b.r.ProtoMajor == 1 {
		// The deadline may have ended the context of the connection, and with it the contexts
		// of all later requests.
		b.w.Header().Set("Connection", "close")
	}
}

// End ends the limit for good. After a response, it first reads the rest of a body that is
// too large, or that may never come because its client still waits for a 100.
func (b *Timer) End(responded bool) {
	if b == nil {
		return
	}
	if responded && b.active {
		_ = http.NewResponseController(b.w).Flush()
		b.closeBody()
	}
	b.Stop()
}

func (b *Timer) closeBody() {
	if b.active {
		defer b.Stop()
		_ = b.r.Body.Close()
	}
}
