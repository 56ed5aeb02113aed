package engine

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Direction is a direction of data through a [Proxy].
type Direction int

// The directions of data.
const (
	Requests  Direction = iota // from the client to the server
	Responses                  // from the server to the client
)

// Loss is how a [Proxy] makes a connection fail.
type Loss int

// The ways to make a connection fail.
const (
	Cut     Loss = iota // both sides see the connection closed
	Silence             // the connection stays open, and nothing more arrives in that direction
	Hold                // the data waits for [Proxy.Release], even if the sender disconnects
)

// Proxy relays connections to a server, and loses the data that your test chooses. It has an
// address of its own. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	relays   sync.WaitGroup
	held     sync.WaitGroup

	mu       sync.Mutex
	target   string
	open     map[net.Conn]bool
	closed   bool
	lose     [2]func(n int) bool
	loss     Loss
	passed   [2]int
	lost     int
	released chan struct{} // closed when held data can be sent
}

// NewProxy returns a proxy on loopback. It's closed when the test ends. If the target is "",
// the proxy closes every connection until you call [Proxy.Redirect].
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, open: make(map[net.Conn]bool), released: make(chan struct{})}
	p.relays.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Redirect cuts all connections, and relays new ones to another server. If target is "", it
// closes new ones too.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for conn := range p.open {
		_ = conn.Close()
	}
}

// Lose makes the proxy lose data in a direction. It asks choose for each piece: n is 1 for
// the next piece on any connection, 2 for the one after it, and so on. A piece is the result
// of one read, so usually a request or a response. If choose is nil, nothing is lost.
func (p *Proxy) Lose(d Direction, loss Loss, choose func(n int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose[d], p.loss, p.passed[d] = choose, loss, 0
}

// Lost returns how many pieces of data were lost.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Release stops losing data and sends the held data. It returns when the receiver has closed
// its connection after that. The receiver only does so if the sender has disconnected.
func (p *Proxy) Release() {
	p.mu.Lock()
	p.lose = [2]func(int) bool{}
	close(p.released)
	p.released = make(chan struct{})
	p.mu.Unlock()
	p.held.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		target := p.currentTarget()
		if target == "" {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp4", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(target, client, server) {
			return
		}
		requests, responses := make(chan struct{}), make(chan struct{})
		p.relays.Go(func() { defer close(requests); p.relay(Requests, client, server, responses) })
		p.relays.Go(func() { defer close(responses); p.relay(Responses, server, client, requests) })
	}
}

func (p *Proxy) currentTarget() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// keep makes sure that connections are closed with the proxy, or as soon as it's redirected.
// It returns false if the proxy is closed already.
func (p *Proxy) keep(target string, conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.open[conn] = true
		if p.closed || p.target != target {
			_ = conn.Close()
		}
	}
	return !p.closed
}

// relay forwards the data of one direction. If the receiver is gone, relay discards the data,
// and the relay of the other direction notices that. reverseDone is closed when that relay
// has ended.
func (p *Proxy) relay(d Direction, from, to net.Conn, reverseDone <-chan struct{}) {
	defer p.drop(from, to)
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if loss, released, lost := p.nextLoss(d); lost {
				p.applyLoss(loss, released, piece[:n], from, to, reverseDone)
				return
			}
		}
		if _, werr := to.Write(piece[:n]); werr != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			return
		}
	}
}

// nextLoss says whether and how the next piece is lost.
func (p *Proxy) nextLoss(d Direction) (loss Loss, released <-chan struct{}, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[d]++
	if p.lose[d] == nil || !p.lose[d](p.passed[d]) {
		return 0, nil, false
	}
	p.lost++
	if p.loss == Hold {
		p.held.Add(1)
	}
	return p.loss, p.released, true
}

// applyLoss makes a connection fail, starting with piece.
func (p *Proxy) applyLoss(loss Loss, released <-chan struct{}, piece []byte, from, to net.Conn, reverseDone <-chan struct{}) {
	switch loss {
	case Silence:
		_, _ = io.Copy(io.Discard, from)
	case Hold:
		defer p.held.Done()
		<-released
		_, _ = to.Write(piece)
		_, _ = io.Copy(to, from) // until the sender has disconnected
		if c, ok := to.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
		<-reverseDone // the receiver has processed it
	}
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.open, conn)
		_ = conn.Close()
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	close(p.released)
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.relays.Wait()
}
