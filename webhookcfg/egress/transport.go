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

	// clientTimeout bounds a whole call by [Policy.Client].
	clientTimeout = 30 * time.Second
)

// Transport is the [http.RoundTripper] for whoever sends notifications: it calls
// what the policy allows, and nothing else, whatever a name meant when the URL
// was checked. It ignores the proxies that the environment names, since a proxy
// would be dialled in place of what is judged. It follows no redirect, as no
// RoundTripper does. It verifies certificates, speaks TLS 1.2 or newer, HTTP/1.1
// and HTTP/2, and decompresses nothing. It is safe for concurrent use.
type Transport struct {
	policy *Policy
	base   *http.Transport
}

// Transport returns a new transport with connections of its own. It keeps idle
// ones: make one, and share it. The error is that of [Policy.Validate].
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

// Client returns a new client on a new [Policy.Transport]. It hands back a
// redirect as the answer it is, sends no cookies, and gives up after 30 seconds,
// the body of the answer included. Log its errors through [RedactError].
func (p *Policy) Client() (*http.Client, error) {
	transport, err := p.Transport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect, Timeout: clientTimeout}, nil
}

// stay is the CheckRedirect that follows nothing.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var errNoURL = errors.New("egress: request without a URL")

// RoundTrip implements [http.RoundTripper]. The error is a [PolicyError] if the policy
// refuses the URL of the request, an [*UnreachableError] if there was no
// connection, and otherwise that of [http.Transport].
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

// CloseIdleConnections closes the connections that no request uses now.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// ReadBody reads at most limit bytes of the body of an answer and closes it. The
// rest is not read: truncated says that there is one. A receiver can send without
// end; only the context of the request, or the Timeout of the client, bounds the
// time this takes.
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
