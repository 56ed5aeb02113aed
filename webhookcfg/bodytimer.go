package webhookcfg

import (
	"net/http"
	"sync"
	"time"
)

// bodyTimer bounds how long the client may take to send its body, even if the handler
// never reads it. A read deadline is only set once the time is over, because it replaces
// an earlier one, of the server or of a middleware, and because one that passes after the
// body was read looks like a client that disconnected. If the ResponseWriter supports no
// read deadlines, only the limits of its server apply. The methods of a nil timer, that
// of a request without a body, do nothing.
type bodyTimer struct {
	w       http.ResponseWriter
	r       *http.Request
	timer   *time.Timer
	running sync.WaitGroup // the function of the timer
	active  bool           // the body was not read
	late    bool           // the read deadline was set
}

// newBodyTimer returns the timer of a request; end must be called.
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

// stop ends the limit. No read deadline is set after it returns: the ResponseWriter must
// not be used after the handler.
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

// beforeResponse reads what is left of the body, as net/http does after the handler returns,
// but while the time is limited. Where the connection is closed after the response, end does
// that instead.
func (b *bodyTimer) beforeResponse() {
	if b == nil {
		return
	}
	if b.r.Header["Expect"] == nil && b.w.Header()["Connection"] == nil {
		b.closeBody()
	}
	if !b.active && b.late && b.r.ProtoMajor == 1 {
		// The deadline may have ended the context of the connection, and so that of every
		// request to come.
		b.w.Header().Set("Connection", "close")
	}
}

// end ends the limit for good. After a response it first reads the rest of a body that is too
// large, or of one that may never come, since its client expects 100.
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
