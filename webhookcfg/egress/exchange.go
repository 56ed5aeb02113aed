package egress

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Some receivers send more than a response: a body after a 204, more bytes than their
// Content-Length says, or a second response. We call these bytes stray. If the next request
// is sent over the same connection, net/http takes them for its response. The receiver has
// the message then, but the call fails, and the message is sent again.
//
// If stray bytes are there before the next request, we send that over another connection. If
// they come later, one call fails. In both cases, we use each connection to that host only
// once for a while.
const (
	strayTime = time.Hour
	maxStray  = 1000
)

// strayKey is a host and port that sent stray bytes to a client.
type strayKey struct{ client, address string }

// keepStray remembers that a receiver sent stray bytes. Hold mu.
func (p *pool) keepStray(c *pooledConn) {
	p.stray.Put(strayKey{c.client, c.host.address}, time.Now().Add(strayTime))
}

// hasStray reports whether a receiver sent stray bytes not long ago. Hold mu.
func (p *pool) hasStray(key strayKey) bool {
	until, ok := p.stray.Get(key)
	if ok && !time.Now().Before(until) {
		p.stray.Remove(key)
		return false
	}
	return ok
}

// exchange is a request and its response, as a connection sees them.
type exchange struct {
	mu      sync.Mutex
	quiet   bool // since a response has ended: no request was written
	reading bool // net/http waits for bytes, so it has none left
	failed  bool // reading has
	closed  bool
	cut     bool          // closed while net/http waited for more bytes
	waiting chan struct{} // closed as soon as reading or closed
	ending  chan struct{} // closed as soon as failed or closed
	head    []byte        // the start of the response, up to the status
	hasLine bool          // the first line is complete
}

// lastWords is how long an error of a write waits for a response that may have come before it.
const lastWords = 250 * time.Millisecond

// statusBytes is the length of a version and a status, such as "HTTP/1.1 200", and the byte
// after them.
const statusBytes = 13

// start records that a call uses the connection.
func (e *exchange) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.head, e.hasLine = e.head[:0], false
}

// end records that net/http has read the response.
func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quiet = true
}

// wrote records that a request is written.
func (e *exchange) wrote() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quiet = false
}

// reads records that net/http waits for bytes.
func (e *exchange) reads() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = true
	e.cut = e.cut || e.closed
	wake(&e.waiting)
}

// read records the result of a read. It reports whether the bytes are stray, and whether net/http mustn't have
// them, since no request was written to which they could respond.
func (e *exchange) read(b []byte, err error) (isStray, isEarly bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading, e.failed = false, err != nil
	if e.failed {
		wake(&e.ending)
	}
	if len(b) == 0 {
		return false, false
	}
	if e.quiet {
		isLate := isTimeout(b)
		e.failed = e.failed || isLate // the receiver closes the connection, as it may
		return !e.failed, !isLate
	}
	e.head = append(e.head, b[:min(len(b), statusBytes-len(e.head))]...)
	e.hasLine = e.hasLine || bytes.IndexByte(b, '\n') >= 0
	return false, false
}

// isTimeout reports whether bytes are a 408 response. Some servers send one before they close
// an idle connection (RFC 9110 section 15.5.9).
func isTimeout(b []byte) bool {
	return bytes.HasPrefix(b, []byte("HTTP/1.1 408")) || bytes.HasPrefix(b, []byte("HTTP/1.0 408"))
}

// close records that the connection is closed, and reports whether stray bytes are the cause: they
// came with the response, so net/http has them without another read.
func (e *exchange) close() (stray bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	stray = e.quiet && !e.reading && !e.failed && !e.closed
	e.cut = e.cut || e.reading
	e.closed = true
	wake(&e.waiting)
	wake(&e.ending)
	return stray
}

// signal returns a channel that wake closes. Hold mu for both.
func signal(waiting *chan struct{}) <-chan struct{} {
	if *waiting == nil {
		*waiting = make(chan struct{})
	}
	return *waiting
}

func wake(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

// awaitRead waits until net/http waits for bytes. By then, it has closed the connection if it had
// any left from the response before. It reports whether ctx hasn't ended first.
func (e *exchange) awaitRead(ctx context.Context) bool {
	e.mu.Lock()
	if e.reading || e.closed {
		e.mu.Unlock()
		return true
	}
	waiting := signal(&e.waiting)
	e.mu.Unlock()
	select {
	case <-waiting:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitEnd waits until all that the receiver has sent was read, or the connection is closed, but
// not for long.
func (e *exchange) awaitEnd() {
	e.mu.Lock()
	if e.failed || e.closed {
		e.mu.Unlock()
		return
	}
	ending := signal(&e.ending)
	e.mu.Unlock()
	select {
	case <-ending:
	case <-time.After(lastWords):
	}
}

// status returns the status of a response whose header net/http couldn't read, or 0 if there is
// none, or if we gave up before the header was complete. isStray reports that there were bytes,
// but no line with a status.
func (e *exchange) status() (status int, isStray bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.head) == 0 || e.cut {
		return 0, false
	}
	if !e.hasLine || len(e.head) < statusBytes || !bytes.HasPrefix(e.head, []byte("HTTP/1.")) || e.head[8] != ' ' || !bytes.ContainsRune([]byte(" \r\n"), rune(e.head[12])) {
		return 0, true
	}
	minor, digits := string(e.head[7:8]), string(e.head[9:12])
	if !isNumber(minor) || !isNumber(digits) {
		return 0, true
	}
	status, _ = strconv.Atoi(digits)
	return status, false
}

// statusOnly returns a response to a request whose header is malformed. The status line came
// first, so the receiver has said what became of the request.
func statusOnly(req *http.Request, status int) *http.Response {
	return &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       http.NoBody,
		Close:      true,
		Request:    req,
	}
}
