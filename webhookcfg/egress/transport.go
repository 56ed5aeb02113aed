package egress

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits of a [Transport].
const (
	handshakeTimeout = 10 * time.Second
	headerTimeout    = 30 * time.Second
	idleTimeout      = 90 * time.Second
	maxIdle          = 100
	maxHeaderBytes   = 64 << 10

	// clientTimeout bounds a request of [Policy.Client], including the response body.
	clientTimeout = 30 * time.Second
)

// Transport is the [http.RoundTripper] for sending notifications. It connects only to
// addresses that the policy allows, whatever a name resolved to when its URL was
// checked. It ignores proxies configured in the environment, since the check would
// apply to the proxy's address instead of the receiver's. Like any RoundTripper, it
// does not follow redirects. It verifies certificates, supports TLS 1.2 and newer,
// HTTP/1.1 and HTTP/2, and does not decompress responses. It is safe for concurrent use.
type Transport struct {
	policy *Policy
	base   *http.Transport
}

// Transport returns a new transport with its own connection pool, which should
// therefore be shared. The error is that of [Policy.Validate].
func (p *Policy) Transport() (*Transport, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Transport{policy: p, base: &http.Transport{
		DialContext:            p.DialContext,
		TLSClientConfig:        p.tlsConfig(),
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}}, nil
}

// Client returns a new client with a new [Policy.Transport]. It returns redirects as
// responses, sends no cookies, and times out after 30 seconds, which include reading
// the response body. Pass its errors through [RedactError] before logging them.
func (p *Policy) Client() (*http.Client, error) {
	transport, err := p.Transport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect, Timeout: clientTimeout}, nil
}

// noRedirect is a CheckRedirect function that follows no redirect.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var errNoURL = errors.New("egress: request without a URL")

// RoundTrip implements [http.RoundTripper]. The error is a [PolicyError] if the policy
// refuses the URL, an [*UnreachableError] if no connection was established, and
// that of [http.Transport] otherwise.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	err := errNoURL
	if req.URL != nil {
		_, err = t.policy.checkURL(req.URL)
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// ReadBody reads at most limit bytes of the body of a response and closes it. truncated
// reports whether the body is longer. Only the context of the request, or the
// Timeout of the client, bounds the time this takes.
func ReadBody(resp *http.Response, limit int64) (body []byte, truncated bool, err error) {
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil || int64(len(body)) < limit {
		return body, false, err
	}
	n, err := io.ReadFull(resp.Body, make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return body, n > 0, err
}
