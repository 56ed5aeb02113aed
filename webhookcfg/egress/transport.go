package egress

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits of a [Transport].
const (
	headerTimeout  = 30 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 64 << 10

	// If a receiver sends something that isn't a response to a request, net/http logs as much
	// of it as readBufferBytes, quoted in up to four times as many bytes. It's also the limit
	// for the extension of a chunk and for all trailers of a response.
	readBufferBytes = 200

	// clientTimeout bounds a request of [Policy.Client], including the response body.
	clientTimeout = 30 * time.Second
)

// TransportOptions are the options of [Policy.Transport] and [Policy.Client]. The zero value
// suits a service that sends up to 16 notifications to a receiver at the same time. If a
// request finds no idle connection, it opens a new one. Over https that costs many times the
// CPU of the request itself.
//
// These limits of a call are fixed:
//
//	all of it                 30 s in a Client, your deadline with a Transport
//	lookup and connecting     10 s
//	TLS handshake             10 s, with at most 8 certificates in 16 KiB
//	wait for the header       30 s
//	header of the response    64 KiB
//	idle connection           90 s
//	age of a connection       5 min, at the end of a call
type TransportOptions struct {
	// MaxIdleConns bounds the idle connections. It should exceed the number of receivers that
	// you call within a minute or so, and be less than half the file descriptors of the
	// process. Beyond that, the client with the most idle connections loses the one that has
	// been idle longest: see [ContextWithClient]. Zero means 1000.
	MaxIdleConns int

	// MaxIdleConnsPerHost bounds the idle connections to one host and port. It should be the
	// number of requests that you send to one receiver at the same time. Zero means 16.
	MaxIdleConnsPerHost int
}

// The default limits of idle connections.
const (
	defaultMaxIdle        = 1000
	defaultMaxIdlePerHost = 16
)

func (o *TransportOptions) complete() error {
	if min(o.MaxIdleConns, o.MaxIdleConnsPerHost) < 0 {
		return errors.New("egress: negative number in TransportOptions")
	}
	o.MaxIdleConns = cmp.Or(o.MaxIdleConns, defaultMaxIdle)
	o.MaxIdleConnsPerHost = cmp.Or(o.MaxIdleConnsPerHost, defaultMaxIdlePerHost)
	return nil
}

// Transport is the [http.RoundTripper] for sending notifications. It connects only to
// addresses that the policy allows, and checks that again for each connection. It verifies
// certificates, and speaks HTTP/1.1 and TLS 1.2 or newer. With TLS 1.2, a receiver needs a cipher
// suite that crypto/tls has by default, so one with ECDHE. Like any RoundTripper, it doesn't
// follow redirects. It doesn't decompress responses either. It ignores the proxies in the
// environment, because the policy would then check the proxy's address and not the
// receiver's. It's safe for concurrent use.
//
// Give every request a deadline, by its context or the client's Timeout. Without one, a
// receiver that reads or sends slowly can hold a call forever: only the lookup and the
// attempts to connect (10 seconds), the TLS handshake (10 seconds) and the wait for the
// response header (30 seconds after the request was written) have limits of their own.
//
// A receiver can send at most eight certificates, and 16 KiB in a TLS handshake. Intermediate
// authorities can have keys of up to 384 bits (ECDSA) or 4096 bits (RSA). Larger ones are
// left out of the chain, unless they're roots that you trust.
//
// A receiver that speaks only HTTP/2 can't be reached. If it refuses the handshake, as RFC
// 7301 demands, the reason is [ReasonTLS], even in the default probe. Servers in Go accept
// the handshake and fail at the first request.
//
// Some receivers send more than a response, such as a body after a 204. The next request could
// take these bytes for its response, and fail although the receiver got it. So the requests of
// that client to that host and port each use a new connection for an hour, for up to 1000 hosts
// altogether. Beyond that, the client with the most hosts loses the least recently used one.
//
// Many receivers close an idle connection just as the next request is sent over it. net/http repeats a
// request then, once and over a new connection, but a POST only if it has the field Idempotency-Key.
// If a receiver can get your requests twice, set req.Header["Idempotency-Key"] = nil, which isn't sent.
//
// If more than a response comes at once, net/http writes a line of less than 1 KiB to the
// standard logger, which quotes up to 200 bytes of it. Only [log.SetOutput] prevents that.
// The trailers of a response are limited to less than 200 bytes together, and so is the
// extension of a chunk.
type Transport struct {
	policy *Policy
	pool   *pool
}

// Transport returns a new transport. It has its own connection pool, so you should share one.
// Nil opts means the zero value. The error reports an invalid policy, as [Policy.Validate]
// does, or a negative option.
func (p *Policy) Transport(opts *TransportOptions) (*Transport, error) {
	p = p.Clone()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var o TransportOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Transport{policy: p, pool: newPool(o.MaxIdleConns, func() *http.Transport {
		return &http.Transport{
			DialContext:            dialer{policy: p}.dial,
			DialTLSContext:         dialer{policy: p, tls: true}.dial,
			ResponseHeaderTimeout:  headerTimeout,
			IdleConnTimeout:        idleTimeout,
			MaxIdleConnsPerHost:    o.MaxIdleConnsPerHost,
			MaxResponseHeaderBytes: maxHeaderBytes,
			ReadBufferSize:         readBufferBytes,
			DisableCompression:     true,
		}
	})}, nil
}

// Client returns a new client with a new [Policy.Transport]. It returns redirects as
// responses, sends no cookies, and times out after 30 seconds, including the time to read the
// response body. Pass its errors through [RedactError] before you log them.
func (p *Policy) Client(opts *TransportOptions) (*http.Client, error) {
	transport, err := p.Transport(opts)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect, Timeout: clientTimeout}, nil
}

// noRedirect is a CheckRedirect function that follows no redirect.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var (
	errNoURL    = errors.New("egress: request without a URL")
	errSwitched = errors.New("egress: receiver switched protocols")
)

// RoundTrip implements [http.RoundTripper]. The error is a [PolicyError] if the policy
// refuses the URL, and wraps [ErrUnavailable] if an address couldn't be checked. If you
// cancel the request's context, it's the context's error. Otherwise it's an
// [*UnreachableError]: there was no response. With [ReasonResponse] and [ReasonTimeout], the
// receiver may have received the request all the same. The text of an error contains nothing
// that the receiver sent.
//
// If the status line is valid and the rest of the header isn't, there's a response with the
// status and nothing else: the receiver has said what became of the request.
//
// A 101 response is an error, since no deadline would apply to its body. A Location that
// isn't a URL is removed, because a client would replace the response by an error that quotes
// it. Other 1xx responses are hidden from an [httptrace.ClientTrace], because net/http
// wouldn't limit their number otherwise.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var to destination
	err := errNoURL
	if req.URL != nil {
		to, err = t.policy.checkURL(req.Context(), req.URL)
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	c := t.pool.start(req.Context(), to.String())
	defer c.end()
	resp, err := c.host.transport.RoundTrip(req.WithContext(c.context(req.Context())))
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errSwitched
	}
	if err != nil {
		status := c.failed()
		step := ReasonResponse
		if failure := c.tlsFailure(); failure != nil {
			step, err = ReasonTLS, failure
		}
		_, isDial := errors.AsType[*UnreachableError](err)
		failure := unreachable(req.Context(), to, step, err)
		known, ok := errors.AsType[*UnreachableError](failure)
		if ok && !isDial {
			known.connected = c.conn != nil
		}
		if !ok || known.Timeout() || status < 200 {
			return nil, failure
		}
		resp = statusOnly(req, status)
	}
	if location := resp.Header.Get("Location"); location != "" {
		if _, err := req.URL.Parse(location); err != nil {
			resp.Header.Del("Location")
		}
	}
	if secured, ok := c.conn.Conn.(*secureConn); ok {
		resp.TLS = &secured.state
	}
	resp.Request = req
	return resp, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.pool.closeIdle() }

// ReadBody reads at most limit bytes of the body of a response and closes it. truncated
// reports whether the body is longer. ReadBody has no time limit but the request's context
// and the client's Timeout. The text of err contains nothing that the receiver sent, but the
// text of its cause may.
func ReadBody(resp *http.Response, limit int64) (body []byte, truncated bool, err error) {
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	if err == nil && int64(len(body)) >= limit {
		var n int
		n, err = io.ReadFull(resp.Body, make([]byte, 1))
		truncated = n > 0
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		err = &bodyError{err}
	}
	return body, truncated, err
}

// bodyError hides the text of its cause, which may quote a trailer that the receiver sent.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return "egress: incomplete response body" }

func (e *bodyError) Unwrap() error { return e.cause }
