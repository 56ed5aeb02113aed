// Package frames sends malformed HTTP/2 to mounts of the handler. Package mounttest can't
// send these frames, because it uses the client of net/http.
package frames

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/pathtest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Within limit, a server must respond to well-formed requests, and close connections that its
// client closed. After a malformed request we only wait for as long as silence. If the server
// is slower, the test sees less.
const (
	limit   = time.Minute
	silence = 100 * time.Millisecond
	mutants = 100
)

// Server serves a mount until the test ends.
type Server struct {
	*httptest.Server
	service *pathtest.Service
	sent    []sent
}

// sent is an attempt that we sent. The status is "" if there was no response.
type sent struct {
	attempt
	mount  *Mount
	status string
}

// Serve serves a service, or a mount of it. When the test ends, the server must have closed
// all connections that clients closed, and the effects must be as [Server.Check] says. If you
// put a proxy in front, start it after Serve, since it keeps connections open until it stops.
func Serve(t testing.TB, s *pathtest.Service, mounted http.Handler, configure func(*httptest.Server)) *Server {
	t.Helper()
	server := &Server{Server: httptest.NewUnstartedServer(mounted), service: s}
	listener := &listener{Listener: server.Listener}
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would get a line for each malformed frame
	configure(server.Server)
	t.Cleanup(func() {
		listener.expectClosed(t)
		server.Close() // waits for requests
		server.expectEffects(t)
	})
	return server
}

// Start returns a function that starts a server of HTTP/2, with or without TLS.
func Start(overTLS bool) func(*httptest.Server) {
	return func(server *httptest.Server) {
		if overTLS {
			server.EnableHTTP2 = true
			server.StartTLS()
			return
		}
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
	}
}

// listener counts the open connections.
type listener struct {
	net.Listener
	open atomic.Int64
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &counted{Conn: conn, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type counted struct {
	net.Conn
	closed func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func (l *listener) expectClosed(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); l.open.Load() > 0; <-tick.C {
		if time.Since(start) > limit {
			t.Error("a connection is open although its client closed it")
			return
		}
	}
}

// Mount is a mount of a service at [Base].
type Mount struct {
	// URL is the URL of the server: https for TLS, and http for HTTP/2 without it.
	URL string
	// TLS has the roots of the server's certificate.
	TLS *tls.Config
	// Refuses are the well-formed attempts that a proxy may refuse, by the beginnings of
	// their names.
	Refuses []string
	// Forgives are the malformed attempts that a proxy may treat as a request for all, by the
	// beginnings of their names.
	Forgives []string
	// Redirects allows the mount to redirect unclean paths, as a mux does.
	Redirects bool
}

// Check sends malformed and unusual frames to a mount, each sequence over its own connection.
// A sequence that's malformed or means one entity must not reach all entities, and nothing
// may be redirected. A well-formed one must have its effect, even after all the others.
func (s *Server) Check(t testing.TB, m *Mount) {
	t.Helper()
	scheme, authority, _ := strings.Cut(m.URL, "://")
	c := client{scheme: scheme, authority: authority}
	attempts := append(c.table(), c.mutants(mutants)...)
	attempts = append(attempts, attempt{"valid, after all others", []frame{c.request(endStream, all)}, "unset all"})
	dial := m.dialer(authority)
	for _, a := range attempts {
		status, err := a.send(dial, clientID(len(s.sent)))
		if err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		s.sent = append(s.sent, sent{a, m, status})
	}
}

// expectEffects compares the effects of the attempts with the expected ones.
func (s *Server) expectEffects(t testing.TB) {
	t.Helper()
	for i, a := range s.sent {
		effect := s.service.Changes(clientID(i))
		is := func(name string) bool { return strings.HasPrefix(a.name, name) }
		switch {
		case strings.HasPrefix(a.status, "3") && !a.mount.Redirects:
			t.Errorf("%s: status %s", a.name, a.status)
		case a.effect != "" && effect != a.effect && (effect != "" || !slices.ContainsFunc(a.mount.Refuses, is)):
			t.Errorf("%s: status %s, the effect is %q, want %q", a.name, a.status, effect, a.effect)
		case a.effect == "" && strings.Contains(effect, "all") && !slices.ContainsFunc(a.mount.Forgives, is):
			t.Errorf("%s: status %s, the effect is %q", a.name, a.status, effect)
		}
	}
}

// send sends an attempt and reads until a stream or the connection ends, or until the server
// is silent. The status is "" if there was no response.
func (a attempt) send(dial func() (net.Conn, error), clientID string) (status string, err error) {
	conn, err := dial()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	framer := http2.NewFramer(conn, conn)
	framer.AllowIllegalWrites = true
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	// The server can close the connection before it has read everything.
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings()
	for _, f := range a.frames {
		f = f.of(clientID)
		_ = framer.WriteRawFrame(f.kind, f.flags, f.stream, f.payload)
	}
	_ = framer.WritePing(false, [8]byte{})
	for {
		f, err := framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) && a.effect != "" {
			return status, fmt.Errorf("no response within %v", limit)
		}
		if err != nil {
			return status, nil // the framer may also refuse a frame
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok {
			status = h.PseudoValue("status")
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if a.effect == "" {
				_ = conn.SetReadDeadline(time.Now().Add(silence))
			}
		case *http2.RSTStreamFrame:
			return status, nil
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return status, nil
			}
		case *http2.MetaHeadersFrame:
			if f.StreamEnded() {
				return status, nil
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				return status, nil
			}
		}
	}
}

// dialer returns a function that opens a connection. It resumes TLS sessions, which costs
// much less than a full handshake.
func (m *Mount) dialer(address string) func() (net.Conn, error) {
	if m.TLS == nil {
		return func() (net.Conn, error) { return net.Dial("tcp", address) }
	}
	config := m.TLS.Clone()
	config.NextProtos, config.ClientSessionCache = []string{"h2"}, tls.NewLRUClientSessionCache(1)
	return func() (net.Conn, error) {
		conn, err := tls.Dial("tcp", address, config)
		if err == nil && conn.ConnectionState().NegotiatedProtocol != "h2" {
			return nil, errors.Join(errors.New("frames: the server does not speak HTTP/2"), conn.Close())
		}
		return conn, err
	}
}
