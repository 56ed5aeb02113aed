package egress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

// Limits of a [Transport].
const (
	headerTimeout  = 30 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 64 << 10

	// readBufferBytes is as much as net/http logs, quoted in up to four times as many
	// bytes, if a receiver sends something that is no response to a request. It's also the
	// limit for the extension of a chunk and for all trailers of a response.
	readBufferBytes = 200

	defaultMaxIdle        = 1000
	defaultMaxIdlePerHost = 16

	// clientTimeout bounds a request of [Policy.Client], including the response body.
	clientTimeout = 30 * time.Second
)

// TransportOptions are the options of [Policy.Transport] and [Policy.Client]. The zero
// value suits a service that sends 16 notifications to a receiver at the same time. A
// request for which no idle connection is left connects again, which over https takes
// many times the CPU of the request itself.
type TransportOptions struct {
	// MaxIdleConns bounds the idle connections. It should exceed the number of receivers
	// that are called within a minute or so, and be less than half the file descriptors of
	// the process. Zero means 1000.
	MaxIdleConns int

	// MaxIdleConnsPerHost bounds the idle connections to one host and port. It should be
	// the number of requests to one receiver at the same time. Zero means 16.
	MaxIdleConnsPerHost int
}

func (o *TransportOptions) complete() error {
	if min(o.MaxIdleConns, o.MaxIdleConnsPerHost) < 0 {
		return errors.New("egress: negative number in TransportOptions")
	}
	o.MaxIdleConns = cmp.Or(o.MaxIdleConns, defaultMaxIdle)
	o.MaxIdleConnsPerHost = cmp.Or(o.MaxIdleConnsPerHost, defaultMaxIdlePerHost)
	return nil
}

// Transport is the [http.RoundTripper] for sending notifications. It connects only to
// addresses that the policy allows, whatever a name resolved to when its URL was
// checked. It ignores proxies configured in the environment, since the check would
// apply to the proxy's address instead of the receiver's. Like any RoundTripper, it
// does not follow redirects. It verifies certificates, supports TLS 1.2 and newer and
// HTTP/1.1 alone, and does not decompress responses. It is safe for concurrent use.
//
// A request must have a deadline, by its context or by the Timeout of the client: without,
// a receiver that reads or sends slowly is called for ever. The package documentation
// specifies the other limits.
type Transport struct {
	policy *Policy
	pool   *pool
}

// Transport returns a new transport with its own connection pool, which should
// therefore be shared. If opts is nil, the zero value is used. The error is that of
// [Policy.Validate], or reports a negative option.
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
	return &Transport{policy: p, pool: newPool(&http.Transport{
		DialContext:            dialer{policy: p}.dial,
		DialTLSContext:         dialer{policy: p, tls: true}.dial,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           o.MaxIdleConns,
		MaxIdleConnsPerHost:    o.MaxIdleConnsPerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ReadBufferSize:         readBufferBytes,
		DisableCompression:     true,
	})}, nil
}

// Client returns a new client with a new [Policy.Transport]. It returns redirects as
// responses, sends no cookies, and times out after 30 seconds, which include reading
// the response body. Pass its errors through [RedactError] before logging them.
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
// refuses the URL, one that wraps [ErrUnavailable] if an address could not be checked, that
// of the context of the request if it is cancelled, and an [*UnreachableError] if no
// response was received. With [ReasonResponse] and [ReasonTimeout], the receiver may have
// received the request nevertheless. The text of an error contains nothing that the
// receiver sent.
//
// A 101 response is an error, since no deadline would apply to its body. A Location that
// is no URL is removed: a client would replace the response by an error with its text. An
// [httptrace.ClientTrace] isn't told of other 1xx responses, which are then bounded.
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
	c := &call{pool: t.pool, address: to.String()}
	resp, err := t.pool.transport().RoundTrip(req.WithContext(c.context(req.Context())))
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errSwitched
	}
	if err != nil {
		return nil, roundTripError(req.Context(), to, err)
	}
	if location := resp.Header.Get("Location"); location != "" {
		if _, err := req.URL.Parse(location); err != nil {
			resp.Header.Del("Location")
		}
	}
	if c.conn != nil {
		resp.TLS = &c.conn.state
	}
	resp.Request = req
	return resp, nil
}

// roundTripError hides the text of an error of [http.Transport], which may contain what the
// receiver sent.
func roundTripError(ctx context.Context, to destination, err error) error {
	if _, ok := errors.AsType[*singleflight.PanicError](err); ok {
		return err
	}
	return unreachable(ctx, to, ReasonResponse, err)
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.pool.transport().CloseIdleConnections() }

// ReadBody reads at most limit bytes of the body of a response and closes it. truncated
// reports whether the body is longer. Only the context of the request, or the
// Timeout of the client, bounds the time this takes. The text of err contains nothing that
// the receiver sent; that of its cause may.
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

// bodyError hides the text of its cause, which may contain what the receiver sent as a
// trailer.
type bodyError struct{ cause error }

func (e *bodyError) Error() string { return "egress: incomplete response body" }

func (e *bodyError) Unwrap() error { return e.cause }
