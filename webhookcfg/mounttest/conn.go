package mounttest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// conn sends one request in a form, over a connection of its own or with the client of
// HTTP/2.
type conn struct {
	wire   *wire
	form   form
	socket net.Conn // nil for HTTP/2
	reader *bufio.Reader
}

// response is the response to a request, if any.
type response struct {
	status   int // 0 if there was none
	location string
	received string // the request lines that the application got, if it can tell
	late     bool   // no response came in time
	shows    bool   // a stranger got the webhook URL
	unsent   bool   // the client of HTTP/2 refused the request
}

func (r response) String() string {
	switch {
	case r.late:
		return "no response in time"
	case r.status == 0:
		return "the connection was closed without a response"
	default:
		return fmt.Sprint("response ", r.status)
	}
}

// maxResponse is how many bytes of a response we read.
const maxResponse = 64 << 10

// open connects for a request in a form. In the form keptAlive, it also sends another request
// over the connection, the argument first, which must be carried out.
func (w *wire) open(ctx context.Context, f form, first attempt) (*conn, error) {
	c := &conn{wire: w, form: f}
	if f == http2 {
		return c, nil
	}
	socket, err := w.dial(ctx, "tcp", w.address)
	if err != nil {
		return nil, err
	}
	c.socket = socket
	if w.scheme == "https" {
		secured := tls.Client(socket, w.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		c.socket = secured
	}
	c.reader = bufio.NewReader(io.LimitReader(c.socket, maxResponse))
	if f == keptAlive {
		if err := c.sendFirst(ctx, first); err != nil {
			_ = c.socket.Close()
			return nil, err
		}
	}
	return c, nil
}

// sendFirst sends a request that must be carried out, and keeps the connection open.
func (c *conn) sendFirst(ctx context.Context, a attempt) error {
	defer context.AfterFunc(ctx, func() { _ = c.socket.Close() })()
	resp, err := c.roundTrip(a)
	switch {
	case err != nil:
		return fmt.Errorf("the first request over a connection: %w", err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the first request over a connection: response %d", resp.StatusCode)
	case resp.Close:
		return errors.New("connections are not kept alive")
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (c *conn) close() {
	if c.socket != nil {
		_ = c.socket.Close()
	}
}

// send sends an attempt and waits for the response until ctx ends.
func (c *conn) send(ctx context.Context, a attempt) response {
	send := c.sendRaw
	if c.form == http2 {
		send = c.sendHTTP2
	}
	resp := send(ctx, a)
	resp.late = resp.status == 0 && !resp.unsent && errors.Is(ctx.Err(), context.DeadlineExceeded)
	return resp
}

// sendRaw sends an attempt byte for byte. If there is no response, the connection was closed.
func (c *conn) sendRaw(ctx context.Context, a attempt) response {
	defer context.AfterFunc(ctx, func() { _ = c.socket.Close() })()
	resp, err := c.roundTrip(a)
	if err != nil {
		return response{}
	}
	// Don't close the body, that would read it. It ends with the connection.
	return c.response(a, resp)
}

func (c *conn) response(a attempt, resp *http.Response) response {
	return response{
		status: resp.StatusCode, location: resp.Header.Get("Location"),
		shows: a.stranger && a.method == http.MethodGet && c.wire.discloses(resp.Body),
	}
}

func (c *conn) roundTrip(a attempt) (*http.Response, error) {
	// A server can refuse a request before it has read all of it. So we ignore errors of the
	// write, and only the response counts.
	_, _ = io.WriteString(c.socket, c.wire.text(a, c.wire.credentials, c.wire.webhookURL))
	for {
		resp, err := http.ReadResponse(c.reader, &http.Request{Method: a.method})
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// sendHTTP2 sends an attempt with the client of net/http, which refuses some of them itself.
func (c *conn) sendHTTP2(ctx context.Context, a attempt) response {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A server can rightly refuse a malformed path by resetting the stream with
	// PROTOCOL_ERROR. The client would then repeat the request for half a minute, so we stop
	// it at the second try.
	var tries, sent atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if tries.Add(1) > 1 {
				cancel()
			}
		},
		WroteHeaders: func() { sent.Add(1) },
	})
	w := c.wire
	body := io.Reader(strings.NewReader(a.render(w.webhookURL)))
	if a.chunked {
		body = io.MultiReader(body) // net/http can't know its length
	}
	r, err := http.NewRequestWithContext(ctx, a.method, w.scheme+"://"+w.authority, body)
	if err != nil {
		return response{unsent: true}
	}
	if a.body == "" {
		r.Body = http.NoBody
	}
	r.URL.Opaque = "//" + w.authority + a.target // goes out unchanged
	setFields(r, append(header(a.signedIn(w.credentials)), a.header()...))
	resp, err := w.http2.Do(r)
	if err != nil {
		return response{unsent: sent.Load() == 0}
	}
	defer resp.Body.Close()
	return c.response(a, resp)
}
