package egress

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/lru"
)

type clientKey struct{}

// ContextWithClient returns a context whose requests are made for a client, an identifier.
// The client counts for the limit of idle connections: see [TransportOptions.MaxIdleConns].
// Requests without a client count as one.
func ContextWithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// pool has an [http.Transport] for each host and port with a call under way or an open
// connection. One for all would never forget a host that it couldn't connect to. The limit of
// idle connections is the pool's, because net/http doesn't know clients.
type pool struct {
	newTransport func() *http.Transport
	maxIdle      int

	mu    sync.Mutex // also for the fields of hosts, calls and connections
	hosts map[hostKey]*host
	idle  *lru.Map[*pooledConn, struct{}] // by the client of the last call
	stray *lru.Map[strayKey, time.Time]   // until when a host gets no second request over a connection
}

func newPool(maxIdle int, newTransport func() *http.Transport) *pool {
	seed := maphash.MakeSeed()
	return &pool{
		newTransport: newTransport,
		maxIdle:      maxIdle,
		hosts:        make(map[hostKey]*host),
		idle: lru.NewShared[*pooledConn, struct{}](maxIdle+1, func(c *pooledConn) uint64 {
			return maphash.String(seed, c.client)
		}),
		stray: lru.NewShared[strayKey, time.Time](maxStray, func(key strayKey) uint64 {
			return maphash.String(seed, key.client)
		}),
	}
}

// hostKey is a host and port, and how it's called.
type hostKey struct {
	address string
	once    bool // with a new connection for each call
}

// host is a host and port, while it has users.
type host struct {
	hostKey
	transport *http.Transport
	users     int // calls, dials and open connections
}

// release ends a use of a host. Hold mu.
func (p *pool) release(h *host) {
	if h.users--; h.users == 0 && p.hosts[h.hostKey] == h {
		delete(p.hosts, h.hostKey)
	}
}

// maxAge is how long a connection is used again. A receiver that's always busy would otherwise stay
// where its name led when the connection was opened.
const maxAge = 5 * time.Minute

// rest records that no call uses a connection. It returns the connections that the caller
// must close after it has released mu.
func (p *pool) rest(conn *pooledConn) (surplus []*pooledConn) {
	if conn.closed {
		return nil
	}
	if time.Since(conn.opened) > maxAge {
		conn.evicted.Store(true)
		return []*pooledConn{conn}
	}
	p.idle.Put(conn, struct{}{})
	for p.idle.Len() > p.maxIdle {
		next, _ := p.idle.Next()
		p.idle.Remove(next)
		next.evicted.Store(true)
		surplus = append(surplus, next)
	}
	return surplus
}

func closeAll(conns []*pooledConn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// closeIdle closes the connections that no call uses.
func (p *pool) closeIdle() {
	p.mu.Lock()
	hosts := slices.Collect(maps.Values(p.hosts))
	p.mu.Unlock()
	for _, h := range hosts {
		h.transport.CloseIdleConnections()
	}
}

// pooledConn is a connection that tells its pool when it's closed.
type pooledConn struct {
	net.Conn
	pool    *pool
	host    *host
	evicted atomic.Bool // to be closed: no request may be written any more

	opened time.Time
	client string // of the last call
	uses   int    // the number of calls
	closed bool

	exchange exchange
}

// Write implements [net.Conn]. If net/http takes an idle connection that we're about to
// close, it finds that nothing was written, and takes another one.
//
// A receiver can respond before it has read the request, and close the connection. An error for
// the rest of the request waits until net/http has read that response, or it would be lost.
func (c *pooledConn) Write(b []byte) (int, error) {
	if c.evicted.Load() {
		return 0, net.ErrClosed
	}
	c.exchange.wrote()
	n, err := c.Conn.Write(b)
	if err != nil {
		c.exchange.awaitEnd()
	}
	return n, err
}

// Read implements [net.Conn].
func (c *pooledConn) Read(b []byte) (int, error) {
	c.exchange.reads()
	n, err := c.Conn.Read(b)
	isStray, isEarly := c.exchange.read(b[:n], err)
	if isStray {
		c.evicted.Store(true)
		c.pool.mu.Lock()
		c.pool.keepStray(c)
		c.pool.mu.Unlock()
	}
	if isEarly { // net/http could take them for the response to a request that isn't written any more
		return 0, cmp.Or(err, net.ErrClosed)
	}
	return n, err
}

// Close implements [net.Conn].
func (c *pooledConn) Close() error {
	hasStray := c.exchange.close() && !c.evicted.Load()
	c.pool.mu.Lock()
	if hasStray {
		c.pool.keepStray(c)
	}
	if !c.closed {
		c.closed = true
		c.pool.idle.Remove(c)
		c.pool.release(c.host)
	}
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// call is a request of a [Transport] as a dial and net/http see it.
type call struct {
	pool     *pool
	host     *host
	client   string
	deadline time.Time
	conn     *pooledConn   // the connection it uses
	use      int           // the value of conn.uses
	reusable bool          // net/http keeps the connection
	dialled  []*pooledConn // for the call, which may use another one
	ended    bool
	lost     bool // a request was sent over a connection, and got no response
}

type callKey struct{}

var errForgotten = errors.New("egress: no call or connection to the host is left")

// start starts a call to a host and port. Call end afterwards.
func (p *pool) start(ctx context.Context, address string) *call {
	c := &call{pool: p}
	c.client, _ = ctx.Value(clientKey{}).(string)
	c.deadline, _ = ctx.Deadline()
	p.mu.Lock()
	defer p.mu.Unlock()
	key := hostKey{address, p.hasStray(strayKey{c.client, address})}
	h := p.hosts[key]
	if h == nil {
		h = &host{hostKey: key, transport: p.newTransport()}
		h.transport.DisableKeepAlives = h.transport.DisableKeepAlives || key.once
		p.hosts[key] = h
	}
	h.users++
	c.host = h
	return c
}

// end records that there is a response or an error. Only then can we close the connection: if
// the response has no body, net/http keeps the connection first, and would lose the response.
// A connection that was dialled for the call and that nobody has used is idle, too.
func (c *call) end() {
	p := c.pool
	var surplus []*pooledConn
	p.mu.Lock()
	c.ended = true
	if c.reusable {
		surplus = c.rest()
	}
	for _, conn := range c.dialled {
		if conn.uses == 0 {
			surplus = append(surplus, p.rest(conn)...)
		}
	}
	p.release(c.host)
	p.mu.Unlock()
	closeAll(surplus)
}

// dial dials with the deadline of the call. net/http keeps only the values of a request's
// context for a dial. It can start a dial after its call has taken another connection and
// ended. If the pool has forgotten the host by then, nobody would ever use the connection,
// and nobody would close it.
func (c *call) dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if !c.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	p := c.pool
	p.mu.Lock()
	if c.host.users == 0 {
		p.mu.Unlock()
		return nil, errForgotten
	}
	c.host.users++
	p.mu.Unlock()
	var opened *pooledConn
	defer func() { // also after a panic of the host's functions
		if opened == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.release(c.host)
		}
	}()
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	opened = &pooledConn{Conn: conn, pool: p, host: c.host, client: c.client, opened: time.Now()}
	var surplus []*pooledConn
	p.mu.Lock()
	if c.ended {
		surplus = p.rest(opened)
	} else {
		c.dialled = append(c.dialled, opened)
	}
	p.mu.Unlock()
	closeAll(surplus)
	return opened, nil
}

// got records that the call uses a connection.
func (c *call) got(conn net.Conn) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.lost = c.lost || c.conn != nil && !c.conn.evicted.Load()
	c.conn = conn.(*pooledConn)
	c.pool.idle.Remove(c.conn)
	c.conn.uses++
	c.conn.client, c.use = c.client, c.conn.uses
	c.conn.exchange.start()
}

// put records that net/http keeps the connection.
func (c *call) put() {
	var surplus []*pooledConn
	c.pool.mu.Lock()
	c.reusable = true
	c.conn.exchange.end()
	if c.ended {
		surplus = c.rest()
	}
	c.pool.mu.Unlock()
	closeAll(surplus)
}

// rest is pool.rest for the connection of the call, unless another call uses it by now.
func (c *call) rest() (surplus []*pooledConn) {
	if c.conn.uses != c.use {
		return nil
	}
	return c.pool.rest(c.conn)
}

// failed records that there's no response to the call, and returns the status if the receiver
// has sent one.
func (c *call) failed() (status int) {
	if c.conn == nil {
		return 0
	}
	status, isStray := c.conn.exchange.status()
	if isStray && c.use > 1 {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		c.pool.keepStray(c.conn)
	}
	return status
}

// tlsFailure returns why TLS failed on the connection of the call, or nil if it didn't.
func (c *call) tlsFailure() error {
	if c.conn == nil {
		return nil
	}
	secured, ok := c.conn.Conn.(*secureConn)
	if !ok {
		return nil
	}
	if failure := secured.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// context returns a context that makes net/http report to the call.
func (c *call) context(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, callKey{}, c)
	if outer := httptrace.ContextClientTrace(ctx); outer != nil {
		// If somebody looks at 1xx responses, net/http reads any number of them.
		bounded := *outer
		bounded.Got1xxResponse = nil
		ctx = httptrace.WithClientTrace(untraced{ctx}, &bounded)
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c.got(info.Conn)
			// Once a request is lost, net/http would repeat it over one idle connection after
			// another. But it can be the receiver that fails, so it gets one more, over a new one.
			if c.use > 1 && (c.lost || !c.conn.exchange.awaitRead(ctx)) {
				c.conn.evicted.Store(true)
			}
		},
		PutIdleConn: func(err error) {
			if err == nil {
				c.put()
			}
		},
	})
}

// untraced is a context without its trace.
type untraced struct{ context.Context }

func (c untraced) Value(key any) any {
	value := c.Context.Value(key)
	if _, ok := value.(*httptrace.ClientTrace); ok {
		return nil
	}
	return value
}
