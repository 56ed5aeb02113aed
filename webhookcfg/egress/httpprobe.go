package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/strictjson"
)

// HTTPProbe sends requests to target and returns nil if it accepts the responses. client is
// the identifier of the client that sets the URL.
//
// If you write one, send every request with httpClient and ctx. The httpClient enforces the
// policy, follows no redirect and reuses no connection, and ctx has the probe's deadline.
// Read response bodies with [ReadBody]. If something on your side fails, return an error that
// wraps [ErrUnavailable], so the target isn't blamed.
//
// An HTTPProbe must be safe for concurrent use. [Prober.Probe] doesn't wait for one that
// ignores ctx, but it keeps its slot until it returns.
type HTTPProbe func(ctx context.Context, client string, httpClient *http.Client, target URL) error

// AnyResponse returns an HTTPProbe that sends one request without a body and accepts any
// response, even a 404 or 500. It shows that the receiver speaks HTTP, not that the path
// exists: many receivers support only POST. The method can be HEAD, GET, OPTIONS or POST. All
// but HEAD may have side effects on the receiver.
func AnyResponse(method string) (HTTPProbe, error) {
	methods := []string{http.MethodHead, http.MethodGet, http.MethodOptions, http.MethodPost}
	if !slices.Contains(methods, method) {
		return nil, fmt.Errorf("egress: invalid method %q, want one of %v", method, methods)
	}
	return func(ctx context.Context, _ string, httpClient *http.Client, target URL) error {
		resp, err := send(ctx, httpClient, method, target, nil, "")
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // without reading it, since it could be endless
		return nil
	}, nil
}

// Header fields of the CloudEvents "HTTP 1.1 Web Hooks for Event Delivery",
// version 1.0, section 4.
const (
	requestOrigin = "WebHook-Request-Origin"
	allowedOrigin = "WebHook-Allowed-Origin"
)

var errNoConsent = errors.New("egress: origin not allowed by the receiver")

// Handshake returns an HTTPProbe that asks the receiver for its consent, as the abuse
// protection of the CloudEvents webhook specification says (version 1.0, section 4). The
// origin names your sending system and must be a host name, such as "sender.example.com".
//
// The probe sends an OPTIONS request with the origin in the field WebHook-Request-Origin. The
// response must have the same name or "*" in the field WebHook-Allowed-Origin. Its status is
// ignored, as the specification requires. The rest of that section isn't supported: a
// receiver can't negotiate a rate, or consent by callback.
//
// Your notifications must carry WebHook-Request-Origin, too. Add it in
// [example.com/go-webhookcfg/webhookcfg/deliver.Options.Prepare], whose example shows both ends.
func Handshake(origin string) (HTTPProbe, error) {
	if addr, err := parseHost(origin, false); err != nil || addr.IsValid() {
		return nil, fmt.Errorf("egress: invalid origin %q: not a host name", origin)
	}
	return func(ctx context.Context, _ string, httpClient *http.Client, target URL) error {
		header := http.Header{}
		header.Set(requestOrigin, origin)
		resp, err := send(ctx, httpClient, http.MethodOptions, target, header, "")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		allowed := resp.Header.Values(allowedOrigin)
		if len(allowed) != 1 || allowed[0] != origin && allowed[0] != "*" {
			return errNoConsent
		}
		return nil
	}, nil
}

// maxEcho leaves room for white space around the text.
const maxEcho = 128

// echoKey is the key of the text. No other protocol that we know of has it: a receiver that
// sends back what it finds under a key like "challenge" may never have heard of us.
const echoKey = "echo"

var errNoEcho = errors.New("egress: the response to the echo is not its text")

// Echo is an HTTPProbe that asks the receiver to send back a random text. Somebody who can
// only guess a URL can't do that, so it shows that the receiver expects notifications. The
// request is a POST with the body
//
//	{"type":"webhook.echo","echo":"<26 letters and digits>"}
//
// The receiver responds with a status from 200 to 299 and the text alone, or exactly
// {"echo":"<the text>"}. White space around either doesn't matter. A server that reflects the
// whole request has agreed to nothing, and fails. So does one that responds to the challenge of
// another protocol, such as a chat service's url_verification: many of these servers do that
// before they know who asks.
//
// The request isn't signed. If your receivers have keys, they prove more with
// [example.com/go-webhookcfg/webhookcfg/deliver.Challenge].
func Echo(ctx context.Context, _ string, httpClient *http.Client, target URL) error {
	text := rand.Text()
	header := http.Header{"Content-Type": {"application/json"}}
	resp, err := send(ctx, httpClient, http.MethodPost, target, header, `{"type":"webhook.echo","`+echoKey+`":"`+text+`"}`)
	if err != nil {
		return err
	}
	body, truncated, err := ReadBody(resp, maxEcho)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("egress: the response to the echo has status %d", resp.StatusCode)
	}
	if truncated || subtle.ConstantTimeCompare([]byte(echoed(body)), []byte(text)) != 1 {
		return errNoEcho
	}
	return nil
}

// echoed returns the text that a receiver sent back.
func echoed(body []byte) string {
	field := []strictjson.Field{{Key: echoKey}}
	if strictjson.Decode(body, field) == nil {
		return field[0].Value
	}
	return strings.Trim(string(body), " \t\r\n")
}

// userAgent is that of deliveries, by default. Some gateways refuse that of net/http.
const userAgent = "go-webhookcfg"

// send sends a request. The caller closes the body of the response.
func send(ctx context.Context, httpClient *http.Client, method string, target URL, header http.Header, body string) (*http.Response, error) {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.Reveal(), content)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("User-Agent", userAgent)
	return httpClient.Do(req)
}
