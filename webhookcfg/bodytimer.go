package webhookcfg

import (
	"net/http"
	"sync"
	"time"
)

// bodyTimer limits how long the client can take to send its body, even if the handler never
// reads it.
//
// It sets a read deadline only when the time is over, for two reasons. A deadline replaces
// any earlier one, which the server or a middleware may have set. And a deadline that passes
// after the body was read looks as if the client had disconnected.
//
// If the ResponseWriter doesn't support read deadlines, only the limits of its server apply.
// A request without a body has a nil timer, and its methods do nothing.
type bodyTimer struct {
	w       http.ResponseWriter
	r       *http.Request
	timer   *time.Timer
	running sync.WaitGroup // for expire, which the timer calls
	active  bool           // the body hasn't been read
	late    bool           // the read deadline has been set
}

// newBodyTimer returns the timer of a request. The caller must call end.
func newBodyTimer(w http.ResponseWriter, r *http.Request, limit time.Duration) *bodyTimer {
	if r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return nil // no body can arrive; see hasBody
	}
	if deadline, ok := r.Context().Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	b := &bodyTimer{w: w, r: r, active: true}
	b.running.Add(1)
	b.timer = time.AfterFunc(limit, b.expire)
	return b
}

func (b *bodyTimer) expire() {
	defer b.running.Done()
	b.late = http.NewResponseController(b.w).SetReadDeadline(time.Unix(1, 0)) == nil
}

// stop ends the limit. After it returns, the timer sets no read deadline, since nothing may
// use the ResponseWriter after the handler has returned.
func (b *bodyTimer) stop() {
	if b == nil || !b.active {
		return
	}
	if b.timer.Stop() {
		b.running.Done()
	}
	b.running.Wait()
	b.active = false
}

// beforeResponse reads the rest of the body while the time is still limited. Otherwise
// net/http would read it after the handler returns. If the connection closes after the
// response, end does it instead.
func (b *bodyTimer) beforeResponse() {
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

// end ends the limit for good. After a response, it first reads the rest of a body that is
// too large, or that may never come because its client still waits for a 100.
func (b *bodyTimer) end(responded bool) {
	if b == nil {
		return
	}
	if responded && b.active {
		_ = http.NewResponseController(b.w).Flush()
		b.closeBody()
	}
	b.stop()
}

func (b *bodyTimer) closeBody() {
	if b.active {
		defer b.stop()
		_ = b.r.Body.Close()
	}
}
