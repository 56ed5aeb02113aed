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
	Requests  Direction = iota // from the client to the server
	Responses                  // from the server to the client
)

// Loss is what happens to a connection some of whose data gets lost.
type Loss int

// The losses.
const (
	Cut     Loss = iota // both sides are told that it is closed
	Silence             // nobody is told, and nothing more comes that way
	Hold                // it is late: it comes after [Proxy.Release], though the sender may be gone
)

// Proxy relays connections between an address of its own and a server, and loses
// data of some at a moment that a test chooses. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	relays   sync.WaitGroup
	held     sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]bool
	closed   bool
	lose     [2]func(n int) bool
	loss     Loss
	passed   [2]int
	lost     int
	released chan struct{} // closed when what is held may go on
}

// NewProxy returns a proxy on loopback, which ends with the test.
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

// Release loses nothing more, and lets go on what is held. It returns when the
// receiver has got it and closed its connection, which it does only if the sender is
// gone.
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
		server, err := net.Dial("tcp4", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		requests, answers := make(chan struct{}), make(chan struct{})
		p.relays.Go(func() { defer close(requests); p.relay(Requests, client, server, answers) })
		p.relays.Go(func() { defer close(answers); p.relay(Responses, server, client, requests) })
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

// relay passes on what comes in a direction. Where the receiver is gone, the relay
// the other way notices that; reverseDone is closed when that relay has ended.
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

// nextLoss reports whether the next piece gets lost, and how.
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

// applyLoss does with a piece, and with what comes after it, what the loss says.
func (p *Proxy) applyLoss(loss Loss, released <-chan struct{}, piece []byte, from, to net.Conn, reverseDone <-chan struct{}) {
	switch loss {
	case Silence:
		_, _ = io.Copy(io.Discard, from)
	case Hold:
		defer p.held.Done()
		<-released
		_, _ = to.Write(piece)
		_, _ = io.Copy(to, from) // until the sender has hung up
		if c, ok := to.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
		<-reverseDone // the receiver is done with it
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
