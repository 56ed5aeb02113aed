package engine

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Direction is one of the two ways through a [Proxy].
type Direction int

// The directions.
const (
	Requests Direction = iota // from the client to the server
	Answers                   // from the server to the client
)

// Loss is what happens to a connection some of whose data gets lost.
type Loss int

// The losses.
const (
	Cut     Loss = iota // both sides are told that it is closed
	Silence             // nobody is told, and nothing more comes that way
)

// Proxy relays connections between an address of its own and a server, and loses
// data of some at a moment that a test chooses. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	relays   sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	lose   [2]func(n int) bool
	loss   Loss
	passed [2]int
	lost   int
}

// NewProxy returns a proxy on loopback, which ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, open: make(map[net.Conn]bool)}
	p.relays.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Lose has what comes in a direction lost wherever choose says so: it is called with
// 1 for the next piece of data on any connection, with 2 for the one after it, and
// so on. A piece is what one read returns, in general a request or an answer. Nil
// loses nothing.
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

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		p.relays.Go(func() { p.relay(Requests, client, server) })
		p.relays.Go(func() { p.relay(Answers, server, client) })
	}
}

// keep notes what is to be closed at the end.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.open[conn] = true
		if p.closed {
			_ = conn.Close()
		}
	}
	return !p.closed
}

func (p *Proxy) relay(d Direction, from, to net.Conn) {
	defer p.drop(from, to)
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && p.loses(d) {
			p.silence(from)
			return
		}
		if _, werr := to.Write(piece[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (p *Proxy) loses(d Direction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[d]++
	if p.lose[d] == nil || !p.lose[d](p.passed[d]) {
		return false
	}
	p.lost++
	return true
}

// silence swallows what else comes, where the loss is not to be noticed.
func (p *Proxy) silence(from net.Conn) {
	p.mu.Lock()
	loss := p.loss
	p.mu.Unlock()
	if loss == Silence {
		_, _ = io.Copy(io.Discard, from)
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
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.relays.Wait()
}
