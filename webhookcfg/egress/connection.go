package egress

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// An HTTP/2 connection counts as unused when it has been open for newGrace without a
// request, or when the last one ended idleGrace ago. Until then, net/http may be about to
// use it, or may be opening another one because it was in use.
const (
	newGrace  = 5 * time.Second
	idleGrace = time.Second
)

// connections are the open HTTP/2 connections of a transport, which bounds those that are
// idle: MaxIdleConns of [http.Transport] does not apply to them. Moreover, it loses track
// of a connection whose receiver sends GOAWAY while there is no request. Unless the
// receiver closes that, it stays open for IdleConnTimeout, even if CloseIdleConnections is
// called, and there may be one for each request.
type connections struct {
	maxIdle int
	base    *http.Transport

	mu      sync.Mutex
	open    map[*connection]struct{}
	maxOpen int // above it, idle ones are closed: maxIdle more than were in use
}

// connection is a TLS connection, below TLS.
type connection struct {
	net.Conn
	address string
	pool    *connections // nil unless HTTP/2 was negotiated

	// Guarded by pool.mu.
	requests    int       // under way
	unusedAfter time.Time // if there are none
}

// add adds a new connection. Unused ones to the same address are lost, or else net/http
// would have used them instead of opening this one.
func (c *connections) add(conn *connection) {
	conn.pool, conn.unusedAfter = c, time.Now().Add(newGrace)
	c.closeUnused(conn.address)
	c.mu.Lock()
	c.open[conn] = struct{}{}
	tooMany := len(c.open) > c.maxOpen
	c.mu.Unlock()
	if tooMany {
		c.closeIdle()
		c.mu.Lock()
		c.maxOpen = len(c.open) + c.maxIdle
		c.mu.Unlock()
	}
}

// closeIdle closes the connections that are not in use, over HTTP/1.1, too.
func (c *connections) closeIdle() {
	c.base.CloseIdleConnections()
	c.closeUnused("")
}

// closeUnused closes the unused connections to an address, or all if that is empty.
func (c *connections) closeUnused(address string) {
	now := time.Now()
	var unused []*connection
	c.mu.Lock()
	for conn := range c.open {
		if (address == "" || address == conn.address) && conn.requests == 0 && !now.Before(conn.unusedAfter) {
			unused = append(unused, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range unused {
		_ = conn.Close()
	}
}

// Close implements [net.Conn].
func (conn *connection) Close() error {
	if conn.pool != nil {
		conn.pool.mu.Lock()
		delete(conn.pool.open, conn)
		conn.pool.mu.Unlock()
	}
	return conn.Conn.Close()
}

// count adds n to the requests that are under way.
func (conn *connection) count(n int) {
	conn.pool.mu.Lock()
	defer conn.pool.mu.Unlock()
	conn.requests += n
	conn.unusedAfter = time.Now().Add(idleGrace)
}

// usage records which HTTP/2 connection a request uses.
type usage struct{ conn *connection }

// trace returns the hooks for a request.
func (u *usage) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		u.end() // a retry
		if secured, ok := info.Conn.(*tls.Conn); ok {
			if conn, ok := secured.NetConn().(*connection); ok && conn.pool != nil {
				u.conn = conn
				conn.count(1)
			}
		}
	}}
}

// end records that the request has ended.
func (u *usage) end() {
	if u.conn != nil {
		u.conn.count(-1)
		u.conn = nil
	}
}

// endWith records that the request has ended once the body of the response is closed.
func (u *usage) endWith(resp *http.Response) {
	if u.conn != nil {
		resp.Body = &body{resp.Body, sync.OnceFunc(u.end)}
	}
}

// body calls closed when it has been closed.
type body struct {
	io.ReadCloser
	closed func()
}

func (b *body) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}
