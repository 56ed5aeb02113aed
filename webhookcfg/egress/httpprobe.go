package egress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// HTTPProbe is a probe that goes beyond connecting: it sends requests to target
// and returns an error unless the responses satisfy it. client is the identifier of
// the client that configures the target. The httpClient enforces the policy of the
// prober, follows no redirect and keeps no connection; ctx has the deadline of the
// prober, and belongs in every request. An HTTPProbe may be called concurrently.
// For bodies there is [ReadBody].
type HTTPProbe func(ctx context.Context, client string, httpClient *http.Client, target URL) error

// AnyResponse returns the exchange that sends one request without a body and takes
// any answer, of whatever status, for success. It shows that HTTP is spoken, not
// that the path exists: many receivers answer only POST. The method is one of
// HEAD, GET, OPTIONS and POST, else AnyResponse returns an error; the last three
// may have effects on the receiver.
func AnyResponse(method string) (HTTPProbe, error) {
	methods := []string{http.MethodHead, http.MethodGet, http.MethodOptions, http.MethodPost}
	if !slices.Contains(methods, method) {
		return nil, fmt.Errorf("egress: method %q is not one of %v", method, methods)
	}
	return func(ctx context.Context, _ string, httpClient *http.Client, target URL) error {
		_, err := send(ctx, httpClient, method, target, nil)
		return err
	}, nil
}

// Header fields of the CloudEvents "HTTP 1.1 Web Hooks for Event Delivery",
// version 1.0, section 4.
const (
	requestOrigin = "WebHook-Request-Origin"
	allowedOrigin = "WebHook-Allowed-Origin"
)

var errNoConsent = errors.New("egress: the receiver does not allow the origin")

// Handshake returns the exchange by which a receiver agrees to be called, the
// abuse protection of the CloudEvents webhook specification (version 1.0, section
// 4): an OPTIONS request that names the sending system, such as
// "sender.example.com", to be answered by the same name or "*" in the field
// WebHook-Allowed-Origin. The status is ignored, as the specification demands. No
// rate is negotiated, and consent by callback is not supported. It returns an
// error unless origin is a host name.
//
// Every notification sent later must carry WebHook-Request-Origin, too.
func Handshake(origin string) (HTTPProbe, error) {
	if addr, err := parseHost(origin, false); err != nil || addr.IsValid() {
		return nil, fmt.Errorf("egress: origin %q is not a host name", origin)
	}
	return func(ctx context.Context, _ string, httpClient *http.Client, target URL) error {
		header := http.Header{}
		header.Set(requestOrigin, origin)
		received, err := send(ctx, httpClient, http.MethodOptions, target, header)
		if err != nil {
			return err
		}
		allowed := received.Values(allowedOrigin)
		if len(allowed) != 1 || allowed[0] != origin && allowed[0] != "*" {
			return errNoConsent
		}
		return nil
	}, nil
}

// ask sends a request and returns the header of the answer. The body is not read:
// it may have no end.
func send(ctx context.Context, httpClient *http.Client, method string, target URL, header http.Header) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, target.Reveal(), nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return resp.Header, nil
}
