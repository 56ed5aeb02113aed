package egress

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// maxUnsettled bounds what net/http remembers about receivers whose connections never become
// idle. That's about a kilobyte for each host and port.
const maxUnsettled = 1000

// pool is an [http.Transport] that we replace before it remembers too much: net/http never
// forgets a host and port that it dialled until a connection to it becomes idle.
type pool struct {
	mu        sync.Mutex
	current   *http.Transport
	unsettled map[string]bool
}

func newPool(t *http.Transport) *pool {
	return &pool{current: t, unsettled: make(map[string]bool)}
}

func (p *pool) transport() *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// dialled records that net/http dials a host and port.
func (p *pool) dialled(address string) {
	p.mu.Lock()
	p.unsettled[address] = true
	if len(p.unsettled) <= maxUnsettled {
		p.mu.Unlock()
		return
	}
	full := p.current
	p.current = full.Clone()
	clear(p.unsettled)
	p.mu.Unlock()
	full.CloseIdleConnections()
}

// settled records that a connection became idle.
func (p *pool) settled(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.unsettled, address)
}

// call is a request of a [Transport] as a dial and net/http see it.
type call struct {
	pool     *pool
	address  string
	deadline time.Time
	conn     *secureConn // nil without TLS
}

type callKey struct{}

// startDial records a dial of a call, and adds the call's deadline to its context. net/http
// keeps only the values of a request's context for a dial.
func startDial(ctx context.Context) (context.Context, context.CancelFunc) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return ctx, func() {}
	}
	c.pool.dialled(c.address)
	if c.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, c.deadline)
}

// context returns a context that makes net/http report to the call.
func (c *call) context(ctx context.Context) context.Context {
	c.deadline, _ = ctx.Deadline()
	ctx = context.WithValue(ctx, callKey{}, c)
	if outer := httptrace.ContextClientTrace(ctx); outer != nil {
		// If somebody looks at 1xx responses, net/http reads any number of them.
		bounded := *outer
		bounded.Got1xxResponse = nil
		ctx = httptrace.WithClientTrace(untraced{ctx}, &bounded)
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { c.conn, _ = info.Conn.(*secureConn) },
		PutIdleConn: func(err error) {
			if err == nil {
				c.pool.settled(c.address)
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
