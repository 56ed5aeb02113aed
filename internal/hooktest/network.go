package hooktest

import (
	"context"
	"net"
	"sync"
)

// Network is a network without sockets, for tests with a fake clock: a Dial, and a listener that
// accepts what it has dialled.
type Network struct {
	dialled chan net.Conn
	closed  chan struct{}
	close   func()
}

// NewNetwork returns a network. Call it in the bubble of the test.
func NewNetwork() *Network {
	closed := make(chan struct{})
	return &Network{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

// Dial connects, whatever the address is.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.dialled <- far:
		return near, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (n *Network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.dialled:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (n *Network) Close() error {
	n.close()
	return nil
}

// Addr implements [net.Listener].
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
