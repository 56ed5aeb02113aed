package egress_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// listener is a server on loopback that counts who connects.
type listener struct {
	net.Listener
	accepted atomic.Int32
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

func listen(t *testing.T) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	return &listener{Listener: inner}
}

// at returns the URL of a host under which the listener is to be found.
func (l *listener) at(scheme, host string) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return scheme + "://" + net.JoinHostPort(host, port) + "/secret?token=secret"
}

// serve hands every connection to handle, and closes it afterwards.
func (l *listener) serve(handle func(net.Conn)) {
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
}

// heard is what a server got from one client, up to the end.
type heard struct {
	bytes []byte
	err   error
}

// serveListening returns what each client sends; over TLS if config is not nil.
func (l *listener) serveListening(config *tls.Config) <-chan heard {
	all := make(chan heard, 16)
	l.serve(func(conn net.Conn) {
		if config != nil {
			conn = tls.Server(conn, config)
		}
		bytes, err := io.ReadAll(conn)
		all <- heard{bytes, err}
	})
	return all
}
