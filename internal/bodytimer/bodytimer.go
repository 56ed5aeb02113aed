// Package bodytimer limits how long a client can take to send the body of its request.
//
// Without a limit, a request holds its connection and its goroutine for as long as the client
// likes, even if no handler reads the body: net/http reads what is left of it before it sends
// the response, and again after the handler has returned. Only [http.Server.ReadTimeout]
// would end that, and not every host can set it.
package bodytimer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Serve lets next respond to a request whose body must arrive within the limit, or earlier if
// the request's context ends earlier. After that, reading the body fails, the response says
// "Connection: close", and the connection ends with it. So next needs no deadline of its own
// for reading, and it doesn't have to read the body at all.
//
// A client that still sends its body gets time until the limit to finish, because many don't
// read the response before that. It gets the response first if it waits for a 100, or if the
// status is 413.
//
// next must read the body and write the response in the goroutine that called it. If the
// ResponseWriter doesn't support read deadlines, only the limits of its server apply. That's also
// so if a middleware reports the end of a body before it has come, as an [io.LimitReader] or a
// decoder can, and the number of bytes doesn't show that.
func Serve(next http.Handler, limit time.Duration, w http.ResponseWriter, r *http.Request) {
	if !canHaveBody(r) {
		next.ServeHTTP(w, r)
		return
	}
	if deadline, ok := r.Context().Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	// net/http looks at the Body of its own request to decide whether it can use the
	// connection again, so next gets a copy with another one.
	t := &timer{w: w, r: r, timed: *r, limit: limit, until: time.Now().Add(limit), active: true}
	t.timed.Body = body{t}
	t.running.Add(1)
	t.timer = time.AfterFunc(limit, t.expire)
	returned := false
	defer func() { t.end(returned) }()
	next.ServeHTTP(writer{t}, &t.timed)
	returned = true
}

// canHaveBody reports whether a body can arrive. Over HTTP/2, the length is also 0 if the
// field can't be parsed.
func canHaveBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && (r.ContentLength != 0 || r.Header["Content-Length"] != nil)
}

// timer limits the time for a body.
//
// It sets a read deadline only when the time is over, for two reasons. A deadline replaces
// any earlier one, which the server or a middleware may have set. And a deadline that passes
// after the body was read looks as if the client had disconnected. If the response comes before
// the rest of the body, neither matters any more, since the connection ends with it.
type timer struct {
	w         http.ResponseWriter
	r         *http.Request
	timed     http.Request // the copy for the handler
	limit     time.Duration
	until     time.Time // when it ends
	read      int64     // bytes of the body
	broken    bool      // reading it has failed, or panicked
	timer     *time.Timer
	running   sync.WaitGroup // for expire, which the timer calls
	active    bool           // the time is limited: the body hasn't been read
	late      bool           // the read deadline has been set
	responded bool
	closing   bool // the response comes before the rest of the body
}

func (t *timer) expire() {
	defer t.running.Done()
	t.endReads()
}

// endReads makes every read of the connection fail from now on.
func (t *timer) endReads() {
	t.late = http.NewResponseController(t.w).SetReadDeadline(time.Unix(1, 0)) == nil
}

// stop ends the limit. After it returns, the timer sets no read deadline, since nothing may
// use the ResponseWriter after the handler has returned.
func (t *timer) stop() {
	if !t.active {
		return
	}
	if t.timer.Stop() {
		t.running.Done()
	}
	t.running.Wait()
	t.active = false
}

// beforeResponse reads the rest of the body while the time is still limited. Otherwise
// net/http would read it after the handler returns. If the response comes first, net/http does
// so, and end limits the time for that.
func (t *timer) beforeResponse(status int) {
	if t.responded || status < http.StatusOK {
		return
	}
	t.responded = true
	if t.active {
		t.closing = t.r.ProtoMajor == 1 && (status == http.StatusRequestEntityTooLarge || t.r.Header["Expect"] != nil ||
			strings.EqualFold(t.w.Header().Get("Connection"), "close"))
		if !t.closing {
			t.readRest()
		}
	}
	// If the time is over, the deadline may have ended the context of the connection, and with
	// it the contexts of all later requests. If it isn't, but the body hasn't ended, it still can.
	if t.closing || t.r.ProtoMajor == 1 && (t.active || t.late) {
		t.w.Header().Set("Connection", "close")
	}
}

// end ends the limit for good.
func (t *timer) end(returned bool) {
	if returned {
		t.beforeResponse(http.StatusOK) // if the handler wrote nothing
	}
	unread := t.active
	t.stop()
	switch {
	case t.late:
	case returned && t.closing:
		t.limitRest()
	case unread:
		// net/http closes the connection after a panic, but first it would wait for the rest of
		// the body.
		t.endReads()
	}
}

// limitRest limits how long net/http waits for the rest of the body, once it has completed the
// response: until the limit, or until an earlier deadline of the server.
func (t *timer) limitRest() {
	if s, ok := t.r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ReadTimeout > 0 && s.ReadTimeout < t.limit {
		return
	}
	_ = http.NewResponseController(t.w).SetReadDeadline(t.until)
}

// maxRest is how much net/http reads of a body that the handler hasn't read.
const maxRest = 256 << 10

// readRest reads what is left of the body. The Body can be one of a middleware, whose Close does
// nothing, and net/http would then read the rest after we have stopped the time.
func (t *timer) readRest() {
	if t.r.ProtoMajor != 1 { // where a body that's left is no work
		t.closeBody()
		return
	}
	if t.broken || t.r.ContentLength-t.read > maxRest {
		return
	}
	if _, err := io.CopyN(io.Discard, body{t}, maxRest); errors.Is(err, http.ErrBodyReadAfterClose) {
		t.stop()
	}
}

func (t *timer) closeBody() {
	defer t.stop()
	_ = t.r.Body.Close()
}

// body ends the limit when it has been read.
type body struct{ *timer }

func (b body) Read(p []byte) (int, error) {
	b.broken = true
	n, err := b.r.Body.Read(p)
	b.broken = err != nil
	b.read += int64(n)
	// A middleware can end it early, and one that decodes it can have read less of it than we have.
	if errors.Is(err, io.EOF) && (b.read == b.r.ContentLength || b.r.ContentLength < 0) {
		b.stop()
	}
	return n, err
}

func (b body) Close() error { return b.r.Body.Close() }

// writer is the ResponseWriter of a request with a body.
type writer struct{ *timer }

func (w writer) Header() http.Header { return w.w.Header() }

func (w writer) WriteHeader(status int) {
	w.beforeResponse(status)
	w.w.WriteHeader(status)
}

func (w writer) Write(p []byte) (int, error) {
	w.beforeResponse(http.StatusOK)
	return w.w.Write(p)
}

// FlushError is for [http.ResponseController]. A flush writes the header, too.
func (w writer) FlushError() error {
	w.beforeResponse(http.StatusOK)
	return http.NewResponseController(w.w).Flush()
}

// Unwrap is for [http.ResponseController].
func (w writer) Unwrap() http.ResponseWriter { return w.w }
