package mounttest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// wire sends requests to the mount.
type wire struct {
	scheme, authority string
	base              string // escaped path
	address           string // host and port
	timeout           time.Duration
	client            *http.Client // for correct requests, and for HTTP/2
	tls               *tls.Config  // for raw requests
	major             int          // version of HTTP of the last response to the client

	secret      string
	credentials string // user-pass of Basic, encoded
	webhookURL  string
	shown       string // the part of webhookURL that may be seen
}

// sent is what came back for a request.
type sent struct {
	status   int // 0 if there was no response
	location string
	late     bool // there was none in time
}

func newWire(t Target, base *url.URL) wire {
	config := t.TLSConfig.Clone() // nil of nil
	if config == nil {
		config = new(tls.Config)
	}
	port := base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	w := wire{
		scheme:      base.Scheme,
		authority:   base.Host,
		base:        strings.TrimRight(base.EscapedPath(), "/"),
		address:     net.JoinHostPort(base.Hostname(), port),
		timeout:     t.Timeout,
		tls:         config.Clone(),
		secret:      t.Secret,
		credentials: base64.StdEncoding.EncodeToString([]byte(t.ClientID + ":" + t.Secret)),
		webhookURL:  t.WebhookURL,
		shown:       egress.NewURL(t.WebhookURL).String(),
	}
	w.tls.NextProtos = []string{"http/1.1"}
	if w.tls.ServerName == "" {
		w.tls.ServerName = base.Hostname()
	}
	w.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return w
}

func (w *wire) close() { w.client.CloseIdleConnections() }

// redact removes the secrets from a text of the mount or of a host's function.
func (w *wire) redact(text string) string {
	return redact.Text(text, []string{w.secret, w.credentials}, w.webhookURL, w.shown)
}

// maxResponse bounds the part of a response that is read, in bytes.
const maxResponse = 64 << 10

// send sends an attempt. Its error is one of the connection before the request was sent,
// or of ctx.
func (w *wire) send(ctx context.Context, a attempt) (sent, error) {
	bounded, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	send := w.sendRaw
	if a.version == http2 {
		send = w.sendHTTP2
	}
	result, err := send(bounded, a)
	if ctx.Err() != nil {
		return sent{}, ctx.Err()
	}
	result.late = result.status == 0 && errors.Is(bounded.Err(), context.DeadlineExceeded)
	return result, err
}

// sendRaw sends an attempt byte for byte over a connection of its own.
func (w *wire) sendRaw(ctx context.Context, a attempt) (sent, error) {
	socket, err := new(net.Dialer).DialContext(ctx, "tcp", w.address)
	if err != nil {
		return sent{}, err
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	conn := socket
	if w.scheme == "https" {
		secured := tls.Client(socket, w.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return sent{}, err
		}
		conn = secured
	}
	// A server may refuse a request before it has read all of it, so the response counts,
	// not the error of the write. Without a response, the connection was closed.
	_, _ = io.WriteString(conn, w.text(a, w.credentials, w.webhookURL))
	r := bufio.NewReader(io.LimitReader(conn, maxResponse))
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: a.method})
		if err != nil {
			return sent{}, nil
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			// Nothing reads the body, and closing it would: the connection ends with it.
			return sent{resp.StatusCode, resp.Header.Get("Location"), false}, nil
		}
	}
}

// sendHTTP2 sends an attempt with the client of net/http, which refuses some itself.
func (w *wire) sendHTTP2(ctx context.Context, a attempt) (sent, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The client repeats a request whose stream was reset with PROTOCOL_ERROR, a correct
	// refusal of a malformed path, for half a minute.
	tries := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if tries++; tries > 1 {
			cancel()
		}
	}})
	body := io.Reader(strings.NewReader(a.render(w.webhookURL)))
	if a.chunked {
		body = io.MultiReader(body) // whose length net/http does not know
	}
	r, err := http.NewRequestWithContext(ctx, a.method, w.scheme+"://"+w.authority, body)
	if err != nil {
		return sent{}, err
	}
	if a.body == "" {
		r.Body = http.NoBody
	}
	r.URL.Opaque = "//" + w.authority + a.target // as it is
	r.Header.Set("Authorization", "Basic "+w.credentials)
	for _, field := range a.header() {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return sent{}, nil
	}
	return sent{resp.StatusCode, resp.Header.Get("Location"), false}, resp.Body.Close()
}

func (a attempt) render(webhookURL string) string {
	quoted, _ := json.Marshal(webhookURL) // a string has no error
	return strings.ReplaceAll(a.body, `"{url}"`, string(quoted))
}

// header returns the fields of an attempt beyond those of every request.
func (a attempt) header() []string {
	isType := func(field string) bool { return strings.HasPrefix(field, "Content-Type: ") }
	if a.body == "" || slices.ContainsFunc(a.fields, isType) {
		return a.fields
	}
	return append([]string{"Content-Type: application/json"}, a.fields...)
}

// text returns an attempt as it goes over the wire, with the given secrets.
func (w *wire) text(a attempt, credentials, webhookURL string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\nConnection: close\r\nAuthorization: Basic %s\r\n",
		a.method, a.target, a.version, w.authority, credentials)
	for _, field := range a.header() {
		b.WriteString(field + "\r\n")
	}
	body := a.render(webhookURL)
	switch {
	case a.chunked:
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%s\r\n%s\r\n0\r\n\r\n", strconv.FormatInt(int64(len(body)), 16), body)
	case body != "":
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	default:
		b.WriteString("\r\n")
	}
	return b.String()
}

// setOne and unset are correct requests for one entity.
func (w *wire) setOne(ctx context.Context, entity string) error {
	body, _ := json.Marshal(map[string]string{"endpoint_id": entity, "webhook_url": w.webhookURL}) // strings have no error
	_, err := w.do(ctx, http.MethodPost, configure, body)
	return err
}

func (w *wire) unset(ctx context.Context, entity string) error {
	_, err := w.do(ctx, http.MethodDelete, configure+"/"+entity, nil)
	return err
}

// read returns the webhook URL of an entity.
func (w *wire) read(ctx context.Context, entity string) (string, error) {
	data, err := w.do(ctx, http.MethodGet, configure+"/"+entity, nil)
	if err != nil {
		return "", err
	}
	var hook struct {
		URL *string `json:"webhook_url"`
	}
	if err := json.Unmarshal(data, &hook); err != nil {
		return "", errors.New("the response is not JSON")
	}
	if hook.URL == nil {
		return "", nil
	}
	return *hook.URL, nil
}

// do sends a correct request, to which the response is 200.
func (w *wire) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.scheme+"://"+w.authority+w.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Basic "+w.credentials)
	// Without a value the field is not sent: it makes the client send the request again if
	// the server closed the idle connection at the same moment.
	r.Header["Idempotency-Key"] = []string{}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	w.major = resp.ProtoMajor
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s, a correct request: response %s%s", method, r.URL.EscapedPath(), resp.Status, hint(method, resp))
	}
	return data, nil
}

// hint names the usual reason of a refusal of a correct request.
func hint(method string, resp *http.Response) string {
	switch resp.StatusCode {
	case http.StatusMethodNotAllowed:
		if method == http.MethodGet {
			return ": without Options.Reads, Target.Resolve is needed"
		}
	case http.StatusNotFound:
		return ": check BaseURL, and that Entity and Witness exist"
	case http.StatusUnauthorized:
		return ": check ClientID and Secret"
	case http.StatusBadRequest:
		return ": check WebhookURL"
	case http.StatusTooManyRequests:
		return ": the limits of sign-ins and probes must allow a few hundred requests"
	}
	if location := resp.Header.Get("Location"); location != "" {
		return " to " + location + ": BaseURL must be the final one"
	}
	return ""
}
