package mounttest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	dial              func(ctx context.Context, network, address string) (net.Conn, error)
	client            *http.Client // for correct requests
	http2             *http.Client
	tls               *tls.Config // for raw requests

	secret      string
	credentials string // user-pass of Basic, encoded
	webhookURL  string
	shown       string // the part of webhookURL that reports can show
}

func newWire(t Target, base *url.URL) wire {
	config := t.TLSConfig.Clone() // nil stays nil
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
		dial:        new(net.Dialer).DialContext,
		client:      newClient(config, nil),
		http2:       newClient(config, new(http.Protocols)),
		tls:         config.Clone(),
		secret:      t.Secret,
		credentials: base64.StdEncoding.EncodeToString([]byte(t.ClientID + ":" + t.Secret)),
		webhookURL:  t.WebhookURL,
		shown:       egress.NewURL(t.WebhookURL).String(),
	}
	w.tls.NextProtos = []string{"http/1.1"}
	w.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1) // saves work, with hundreds of handshakes
	if w.tls.ServerName == "" {
		w.tls.ServerName = base.Hostname()
	}
	return w
}

// newClient returns a client that negotiates the version of HTTP. With only, it speaks HTTP/2
// alone, also without TLS.
func newClient(config *tls.Config, only *http.Protocols) *http.Client {
	if only != nil {
		only.SetHTTP2(true)
		only.SetUnencryptedHTTP2(true)
	}
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true, Protocols: only, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

func (w *wire) close() {
	w.client.CloseIdleConnections()
	w.http2.CloseIdleConnections()
}

// redact removes the secrets from a text that comes from the mount or from a host's function.
func (w *wire) redact(text string) string {
	return redact.Known(text, []string{w.secret, w.credentials}, w.webhookURL, w.shown)
}

// header returns the fields that every request has, with its Authorization if it has one.
// Proxies often refuse a request without a User-Agent or Accept. Then we couldn't tell whether
// they'd refuse the malformed target.
func header(authorization string) []string {
	fields := []string{
		"User-Agent: Mozilla/5.0 (compatible; mounttest)",
		"Accept: application/json, */*",
	}
	if authorization != "" {
		fields = append(fields, "Authorization: "+authorization)
	}
	return fields
}

// signedIn returns the Authorization of an attempt, with the given credentials of the
// client.
func (a attempt) signedIn(credentials string) string {
	if a.stranger {
		return a.authorization
	}
	return "Basic " + credentials
}

// header returns the fields of an attempt that not every request has.
func (a attempt) header() []string {
	isType := func(field string) bool { return strings.HasPrefix(field, "Content-Type: ") }
	if a.body == "" || slices.ContainsFunc(a.fields, isType) {
		return a.fields
	}
	return append([]string{"Content-Type: application/json"}, a.fields...)
}

func (a attempt) render(webhookURL string) string {
	quoted, _ := json.Marshal(webhookURL) // a string has no error
	return strings.NewReplacer(`"{url}"`, string(quoted), "{escaped}", url.QueryEscape(webhookURL)).Replace(a.body)
}

// text returns an attempt as it goes over the wire, with the given credentials and webhook
// URL.
func (w *wire) text(a attempt, credentials, webhookURL string) string {
	target := a.target
	if a.form == absolute {
		target = w.scheme + "://" + w.authority + target
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\n", a.method, target, a.form.version(), w.authority)
	for _, field := range append(header(a.signedIn(credentials)), a.header()...) {
		b.WriteString(field + "\r\n")
	}
	body := a.render(webhookURL)
	framing := a.framing
	switch {
	case a.chunked:
		framing = cmp.Or(framing, "Transfer-Encoding: chunked")
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	case body != "":
		framing = cmp.Or(framing, "Content-Length: {n}")
	}
	if framing != "" {
		b.WriteString(strings.ReplaceAll(framing, "{n}", strconv.Itoa(len(body))) + "\r\n")
	}
	return b.String() + "\r\n" + body
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

// discloses reports whether a response has the webhook URL.
func (w *wire) discloses(body io.Reader) bool {
	data, _ := io.ReadAll(io.LimitReader(body, maxResponse)) // as much as there is
	quoted, _ := json.Marshal(w.webhookURL)                  // a string has no error
	return bytes.Contains(data, []byte(w.webhookURL)) || bytes.Contains(data, quoted)
}

// do sends a correct request and expects status 200.
func (w *wire) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.scheme+"://"+w.authority+w.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	setFields(r, header("Basic "+w.credentials))
	// A field without a value isn't sent. But it makes the client repeat the request if the
	// server closed the idle connection at the same moment.
	r.Header["Idempotency-Key"] = []string{}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s, a correct request: response %s%s", method, r.URL.EscapedPath(), redact.Presented(resp.Status), hint(method, resp))
	}
	return data, nil
}

func setFields(r *http.Request, fields []string) {
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
}

// hint says why a mount usually refuses a correct request with this status.
func hint(method string, resp *http.Response) string {
	switch resp.StatusCode {
	case http.StatusMethodNotAllowed:
		if method == http.MethodGet {
			return ": set Options.Reads of the handler, or Target.Resolve"
		}
	case http.StatusNotFound:
		return ": check BaseURL, and that Entity and Witness exist; if the handler logs nothing, a proxy " +
			"probably strips the prefix and sends requests past it"
	case http.StatusUnauthorized:
		return ": check ClientID and Secret"
	case http.StatusBadRequest:
		return ": check WebhookURL"
	case http.StatusTooManyRequests:
		return ": raise the limits of sign-ins and probes, the check sends a thousand requests"
	}
	if location := resp.Header.Get("Location"); location != "" {
		return " to " + location + ": set BaseURL to the URL that needs no redirect"
	}
	return ""
}
