// Package hostile has receivers that fall silent, drip, flood, reset, or break the rules of
// HTTP. If your package connects to receivers, run its tests against all of them. Then check
// that nothing stays open:
//
//	before := hostile.Goroutines()
//	for _, receiver := range hostile.Receivers(t) {
//		server := receiver.Start(t)
//		// Send to server.URL with a short deadline.
//		err := server.AwaitClosed(client.CloseIdleConnections)
//		server.Close()
//	}
//	err := before.Await()
package hostile

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Limit is how long we wait for things that should have ended long ago. It's shorter than the
// default time limits of senders, which would otherwise hide a leak.
const Limit = 5 * time.Second

// Receiver is a kind of hostile receiver.
type Receiver struct {
	// Name is unique.
	Name string

	// Connects says that you can connect, and for https complete the handshake. Otherwise
	// connecting must fail.
	Connects bool

	// Responds says that you can get the status of a response. Otherwise sending must fail.
	Responds bool

	// BodySize is how many bytes the body of your request needs to get to the hostile part.
	// Zero means that you don't need a body.
	BodySize int

	// Roots verify the receiver's certificate. Trust them in your sender.
	Roots *x509.CertPool

	scheme string
	config *tls.Config // nil: no handshake
	serve  func(*peer)
}

// Receivers returns all kinds of receivers.
func Receivers(tb testing.TB) []Receiver {
	tb.Helper()
	certificate := newCertificate(tb)
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	var all []Receiver
	add := func(r Receiver, name, scheme string, protocols ...string) {
		r.Name, r.scheme, r.Roots = name+r.Name, scheme, roots
		if len(protocols) > 0 {
			r.config = &tls.Config{
				Certificates:           []tls.Certificate{certificate},
				NextProtos:             protocols,
				SessionTicketsDisabled: true,
			}
		}
		all = append(all, r)
	}
	for _, r := range overTCP {
		r.Connects = true
		add(r, "TCP: ", "http")
		r.Connects = false
		add(r, "TCP instead of TLS: ", "https")
	}
	for _, r := range overHTTP1 {
		r.Connects = true
		add(r, "HTTP/1.1: ", "http")
		add(r, "HTTP/1.1 over TLS: ", "https", "http/1.1")
	}
	for _, r := range overRecords {
		r.Connects = true
		add(r, "TLS: ", "https", "http/1.1")
	}
	return all
}

// newCertificate returns a certificate for 127.0.0.1 that is its own authority.
func newCertificate(tb testing.TB) tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Server is a receiver that runs.
type Server struct {
	Receiver

	// URL has a path and a query that are secret.
	URL string

	listener net.Listener
	ending   chan struct{} // closed once the sender should have closed its connections
	end      func()        // closes ending
	handlers sync.WaitGroup

	mu      sync.Mutex
	open    map[net.Conn]bool
	reached int
}

// Start starts the receiver on a loopback address.
func (r Receiver) Start(tb testing.TB) *Server {
	tb.Helper()
	started.Add(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{
		Receiver: r,
		URL:      r.scheme + "://" + listener.Addr().String() + "/secret?token=secret",
		listener: listener,
		ending:   make(chan struct{}),
		open:     make(map[net.Conn]bool),
	}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	tb.Cleanup(s.Close)
	s.handlers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = true
			s.mu.Unlock()
			s.handlers.Go(func() { s.handle(conn) })
		}
	})
	return s
}

// handle serves one connection. Whatever the receiver does, the connection stays open
// until the sender closes it.
func (s *Server) handle(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
	}()
	p := &peer{Conn: conn, raw: conn, server: s}
	if s.config != nil {
		config := s.config.Clone()
		config.KeyLogWriter = &p.keyLog
		secured := tls.Server(conn, config)
		if secured.Handshake() != nil {
			_, _ = io.Copy(io.Discard, conn)
			return
		}
		p.Conn = secured
	}
	p.reader = bufio.NewReader(p.Conn)
	s.serve(p)
	_, _ = io.Copy(io.Discard, p.reader)
	_, _ = io.Copy(io.Discard, conn)
}

// Reached returns on how many connections the receiver was hostile. If it's 0,
// your sender's deadline was too short, and you have tested nothing.
func (s *Server) Reached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

// AwaitClosed waits until the sender has closed all connections, and returns an error if that
// doesn't happen soon. Meanwhile it calls closeIdle again and again, since a connection can
// become idle after you have the result of a request.
func (s *Server) AwaitClosed(closeIdle func()) error {
	s.end()
	return await(func() error {
		closeIdle()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.open) > 0 {
			return fmt.Errorf("%d connections are still open", len(s.open))
		}
		return nil
	})
}

// Close stops the receiver.
func (s *Server) Close() {
	s.end()
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.handlers.Wait()
}

// peer is the receiver's side of a connection.
type peer struct {
	net.Conn
	raw    net.Conn // without TLS
	keyLog strings.Builder
	reader *bufio.Reader
	server *Server
}

// hostile records that the receiver is hostile from now on.
func (p *peer) hostile() {
	p.server.mu.Lock()
	p.server.reached++
	p.server.mu.Unlock()
}

// send writes text, and reports whether the sender still accepts it.
func (p *peer) send(text string) bool {
	_, err := io.WriteString(p, text)
	return err == nil
}

// flood sends text until the sender closes the connection.
func (p *peer) flood(text string) {
	text = strings.Repeat(text, 1+4096/len(text))
	for p.send(text) {
	}
}

// drip sends text again and again, with a pause after each.
func (p *peer) drip(text string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.send(text) {
		<-tick.C
	}
}

// readNothing leaves the sender's data in the buffers of the connection. We then notice that
// the sender has closed it only when we try to write text.
func (p *peer) readNothing(text string) {
	<-p.server.ending
	p.drip(text)
}

// reset closes the connection with an RST segment.
func (p *peer) reset() {
	_ = p.raw.(*net.TCPConn).SetLinger(0)
	_ = p.raw.Close()
}

// Baseline is the set of goroutines that ran at some time.
type Baseline map[string]string

// Goroutines returns the goroutines that run now.
func Goroutines() Baseline {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := make(Baseline)
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		id, _, _ := strings.Cut(stack, " [") // "goroutine 12 [select]:"
		stacks[id] = stack
	}
	return stacks
}

// Await waits until all goroutines that were started since then have ended, and returns an
// error if that doesn't happen soon. Don't run other tests at the same time.
func (b Baseline) Await() error {
	return await(func() error {
		started := Goroutines()
		maps.DeleteFunc(started, func(id, _ string) bool { return b[id] != "" })
		if len(started) == 0 {
			return nil
		}
		stacks := slices.Sorted(maps.Values(started))
		return fmt.Errorf("%d goroutines are left:\n\n%s", len(stacks), strings.Join(stacks[:min(5, len(stacks))], "\n\n"))
	})
}

// Result returns the value that arrives on a channel, or an error if none arrives soon after
// the sender's deadline. It counts ticks and doesn't look at the clock: a busy machine can
// stop the whole process, and then drops some of them.
func Result[T any](from <-chan T, timeout time.Duration) (value T, err error) {
	const pause = 10 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range (timeout + Limit) / pause {
		select {
		case value = <-from:
			return value, nil
		case <-tick.C:
		}
	}
	return value, errNoResult
}

var errNoResult = errors.New("no result, long after the deadline")

// await calls check until it returns nil, or until Limit has passed. It also makes a minimum
// number of calls, because a busy machine can stop the whole process for that long.
func await(check func() error) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for calls := 0; ; calls++ {
		err := check()
		if err == nil || calls > 500 && time.Since(start) > Limit {
			return err
		}
		<-tick.C
	}
}
