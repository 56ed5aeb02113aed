package egress_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// serve starts an HTTP server on loopback, over TLS and also with HTTP/2 if there is an
// authority.
func serve(t *testing.T, a *authority, handler http.Handler) *listener {
	t.Helper()
	receiver := listen(t)
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = receiver
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if a != nil {
		server.TLS = a.valid(t, receiverName)
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return receiver
}

func newClient(t *testing.T, policy *egress.Policy) *http.Client {
	t.Helper()
	client, err := policy.Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func get(t *testing.T, client *http.Client, target string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestClientDelivers(t *testing.T) {
	ca := newAuthority(t)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+r.RequestURI+" "+string(body))
	})
	for _, test := range []struct {
		scheme string
		ca     *authority
		want   string
	}{
		{"http", nil, "HTTP/1.1 /secret?token=secret hello"},
		{"https", ca, "HTTP/1.1 /secret?token=secret hello"},
	} {
		t.Run(test.scheme, func(t *testing.T) {
			receiver := serve(t, test.ca, echo)
			client := newClient(t, newLoopback(ca))
			const requests = 5
			for range requests {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					receiver.at(test.scheme, receiverName), strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, truncated, err := egress.ReadBody(resp, 1000)
				if string(body) != test.want || truncated || err != nil {
					t.Errorf("response %q, %v, %v", body, truncated, err)
				}
			}
			// On a busy machine, net/http may close a connection instead of reusing it.
			if n := receiver.accepted.Load(); n == requests {
				t.Errorf("%d connections for as many requests", n)
			}
		})
	}
}

// TestEnvironmentProxyIsIgnored checks that the proxy receives no request. A process reads
// the variables only once, so no other test can come first.
func TestEnvironmentProxyIsIgnored(t *testing.T) {
	proxy := serve(t, nil, http.NotFoundHandler())
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	receiver := serve(t, nil, http.NotFoundHandler())
	target := receiver.at("http", receiverName)

	policy := newLoopback(nil)
	if _, err := get(t, newClient(t, policy), target); err != nil {
		t.Error(err)
	}
	for _, httpProbe := range []egress.HTTPProbe{nil, must(egress.AnyResponse(http.MethodGet))} {
		if err := probeWith(t, policy, httpProbe, target); err != nil {
			t.Error(err)
		}
	}
	if proxy.accepted.Load() != 0 {
		t.Error("the proxy was called")
	}
	if n := receiver.accepted.Load(); n != 3 {
		t.Errorf("%d connections to the receiver", n)
	}
	req := &http.Request{URL: must(url.Parse(target))}
	if via, err := http.ProxyFromEnvironment(req); via == nil {
		t.Errorf("the test has no effect: the environment names no proxy (%v)", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serve(t, nil, http.NotFoundHandler())
	for _, status := range []int{301, 302, 303, 307, 308} {
		receiver := serve(t, nil, http.RedirectHandler(elsewhere.at("http", receiverName), status))
		target := receiver.at("http", receiverName)
		policy := newLoopback(nil)
		for name, call := range map[string]func() (*http.Response, error){
			"Client":    func() (*http.Response, error) { return get(t, newClient(t, policy), target) },
			"Transport": func() (*http.Response, error) { return roundTrip(t, newTransport(t, policy), target) },
		} {
			resp, err := call()
			if err != nil || resp.StatusCode != status {
				t.Errorf("%s, %d: %v, %v", name, status, resp, err)
			}
		}
		if err := probeWith(t, policy, must(egress.AnyResponse(http.MethodGet)), target); err != nil {
			t.Errorf("Probe, %d: %v", status, err)
		}
	}
	if elsewhere.accepted.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestRedirectToDeniedAddress uses a client that follows redirects.
func TestRedirectToDeniedAddress(t *testing.T) {
	for location, want := range map[string]egress.PolicyError{
		"http://169.254.169.254/latest/":            egress.ErrNotPublic,
		"http://[::ffff:10.0.0.1]/":                 egress.ErrNotPublic,
		"http://0x7f.1/":                            egress.ErrNumericHost,
		"http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/": egress.ErrNumericHost,
		"ftp://receiver.example/":                   egress.ErrUnsupportedScheme,
		"http://user:secret@receiver.example/":      egress.ErrUserinfo,
	} {
		receiver := serve(t, nil, http.RedirectHandler(location, http.StatusTemporaryRedirect))
		client := &http.Client{Transport: newTransport(t, newLoopback(nil))}
		_, err := get(t, client, receiver.at("http", receiverName))
		var rule egress.PolicyError
		if !errors.As(err, &rule) || rule != want {
			t.Errorf("redirect to %s: %v, want %v", location, err, want)
		}
	}
}

// TestRoundTripChecksURL uses URLs that url.Parse wouldn't return.
func TestRoundTripChecksURL(t *testing.T) {
	var network recorder
	policy := newStrict()
	policy.Resolver, policy.Dial = resolveTo(publicAddr), network.Dial
	transport := newTransport(t, policy)
	for _, test := range []struct {
		url  url.URL
		want egress.PolicyError
	}{
		{url.URL{Scheme: "http", Host: "receiver.example"}, egress.ErrNotHTTPS},
		{url.URL{Scheme: "HTTPS", Host: "receiver.example"}, egress.ErrNotHTTPS},
		{url.URL{Host: "receiver.example"}, egress.ErrNotHTTPS},
		{url.URL{Scheme: "https"}, egress.ErrNoHost},
		{url.URL{Scheme: "https", Host: ":443"}, egress.ErrNoHost},
		{url.URL{Scheme: "https", Host: "receiver.example", Opaque: "//127.0.0.1/"}, egress.ErrNoHost},
		{url.URL{Scheme: "https", Host: "receiver.example", User: url.User("")}, egress.ErrUserinfo},
		{url.URL{Scheme: "https", Host: "receiver.example", Fragment: "part"}, egress.ErrFragment},
		{url.URL{Scheme: "https", Host: "１２７.０.０.１"}, egress.ErrInvalidHostName},
		{url.URL{Scheme: "https", Host: "user@receiver.example"}, egress.ErrInvalidHostName},
		{url.URL{Scheme: "https", Host: "receiver.example/"}, egress.ErrInvalidHostName},
		{url.URL{Scheme: "https", Host: "receiver.example:80:80"}, egress.ErrInvalidPort},
		{url.URL{Scheme: "https", Host: "[::1"}, egress.ErrInvalidPort},
		{url.URL{Scheme: "https", Host: "[::1]x443"}, egress.ErrInvalidPort},
		{url.URL{Scheme: "https", Host: "[::1%lo]"}, egress.ErrZone},
		{url.URL{Scheme: "https", Host: "[1.2.3.4]"}, egress.ErrInvalidSyntax},
		{url.URL{Scheme: "https", Host: "127.0.0.1"}, egress.ErrNotPublic},
	} {
		body := &closeRecorder{Reader: strings.NewReader("hello")}
		req := &http.Request{Method: http.MethodPost, URL: &test.url, Body: body}
		if _, err := transport.RoundTrip(req.WithContext(t.Context())); !errors.Is(err, test.want) {
			t.Errorf("RoundTrip of %#v = %v, want %v", test.url, err, test.want)
		}
		if !body.closed {
			t.Errorf("RoundTrip of %#v leaves the body open", test.url)
		}
	}
	if _, err := transport.RoundTrip(new(http.Request)); err == nil {
		t.Error("RoundTrip without a URL gives no error")
	}
	if dialled := network.take(); dialled != nil {
		t.Errorf("dialled %v", dialled)
	}
}

type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error {
	c.closed = true
	return nil
}

func TestTransportVerifiesCertificates(t *testing.T) {
	good, foreign := newAuthority(t), newAuthority(t)
	receiver := serve(t, good, http.NotFoundHandler())
	for name, test := range map[string]struct {
		roots *authority
		host  string
	}{
		"unknown root": {foreign, receiverName},
		"wrong name":   {good, "other.example"},
	} {
		if _, err := roundTrip(t, newTransport(t, newLoopback(test.roots)), receiver.at("https", test.host)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadBody(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name      string
		body      io.Reader
		limit     int64
		want      string
		truncated bool
		err       error
	}{
		{"shorter", strings.NewReader("abc"), 4, "abc", false, nil},
		{"exact", strings.NewReader("abcd"), 4, "abcd", false, nil},
		{"longer", strings.NewReader("abcde"), 4, "abcd", true, nil},
		{"endless", endless{}, 4, "aaaa", true, nil},
		{"empty", strings.NewReader(""), 4, "", false, nil},
		{"nothing wanted", strings.NewReader("a"), 0, "", true, nil},
		{"negative", strings.NewReader("a"), -1, "", true, nil},
		{"broken", io.MultiReader(strings.NewReader("ab"), failing{broken}), 4, "ab", false, broken},
		{"broken with the last byte", &failingLast{"abcd", broken}, 4, "abcd", false, broken},
		{"broken at the limit", io.MultiReader(strings.NewReader("abcd"), failing{broken}), 4, "abcd", false, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := &closeRecorder{Reader: test.body}
			got, truncated, err := egress.ReadBody(&http.Response{Body: body}, test.limit)
			if string(got) != test.want || truncated != test.truncated || !errors.Is(err, test.err) {
				t.Errorf("ReadBody = %q, %v, %v", got, truncated, err)
			}
			if !body.closed {
				t.Error("the body is left open")
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// failingLast fails together with its data, and is then at its end.
type failingLast struct {
	data string
	err  error
}

func (f *failingLast) Read(p []byte) (int, error) {
	n, err := copy(p, f.data), f.err
	f.data, f.err = "", io.EOF
	return n, err
}

// TestResponseHeaderIsBounded: of a longer header, we have the status alone.
func TestResponseHeaderIsBounded(t *testing.T) {
	ca := newAuthority(t)
	for _, test := range []struct{ bytes, fields int }{{64 << 10, 1}, {64<<10 + 1, 0}, {100 << 10, 0}} {
		synctest.Test(t, func(t *testing.T) {
			policy := inMemory(t, ca, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				const start, end = "HTTP/1.1 204 No Content\r\nX-Long: ", "\r\n\r\n"
				_, _ = io.WriteString(conn, start+strings.Repeat("a", test.bytes-len(start+end))+end)
				silence(conn)
			})
			resp, err := get(t, newClient(t, policy), "http://receiver.example/")
			if err != nil || resp.StatusCode != 204 || len(resp.Header) != test.fields {
				t.Errorf("a header of %d bytes: %v, %v", test.bytes, resp, err)
			}
		})
	}
}

// TestUnsolicitedBytesAreQuoted: net/http logs what follows a response, and we can't prevent
// that. But it's one short line without control bytes.
func TestUnsolicitedBytesAreQuoted(t *testing.T) {
	ca := newAuthority(t)
	synctest.Test(t, func(t *testing.T) { // on a real clock, net/http may close the connection instead
		logged, w := io.Pipe()
		log.SetOutput(w)
		defer log.SetOutput(os.Stderr)
		policy := inMemory(t, ca, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nunsolicited\n\x1b[2J"+strings.Repeat("\x00", 10_000))
			silence(conn)
		})
		if _, err := get(t, newClient(t, policy), "http://receiver.example/"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64<<10)
		n, err := logged.Read(buf)
		if text := string(buf[:n]); err != nil || n > 1<<10 || !strings.Contains(text, `unsolicited\n\x1b[2J`) {
			t.Errorf("%d bytes: %.200q, %v", n, text, err)
		}
	})
}

// TestBrokenLocation: you get the response of a redirect even if it leads nowhere.
func TestBrokenLocation(t *testing.T) {
	receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[secret%zz")
		w.WriteHeader(http.StatusFound)
	}))
	target := receiver.at("http", receiverName)
	resp, err := get(t, newClient(t, newLoopback(nil)), target)
	if err != nil || resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "" {
		t.Errorf("Client: %v, %v", resp, err)
	}
	if err := probeWith(t, newLoopback(nil), must(egress.AnyResponse(http.MethodGet)), target); err != nil {
		t.Errorf("Probe = %v", err)
	}
}

// TestHeaderTimeout: a receiver has 30 seconds for its response header, even if the request
// has a later deadline.
func TestHeaderTimeout(t *testing.T) {
	ca := newAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		transport := newTransport(t, inMemory(t, ca, silence))
		start := time.Now()
		_, err := roundTrip(t, transport, "http://receiver.example/")
		if took := time.Since(start); took != 30*time.Second || reasonOf(err) != egress.ReasonTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestClientTimeout(t *testing.T) {
	if got := newClient(t, newStrict()).Timeout; got != 30*time.Second {
		t.Errorf("the timeout of the client is %v", got)
	}
}

func TestRedactError(t *testing.T) {
	policy := newStrict()
	policy.Resolver = unknownName
	_, fromClient := get(t, newClient(t, policy), "https://receiver.example/secret?token=secret")
	_, fromParse := url.Parse("https://receiver.example/secret" + repeat("\n", 1))
	_, refused := get(t, newClient(t, policy), "https://127.0.0.1/secret?token=secret")
	for _, err := range []error{fromClient, fromParse, refused} {
		if !strings.Contains(err.Error(), "secret") {
			t.Errorf("the test has no effect: %v", err)
		}
		if redacted := egress.RedactError(err); strings.Contains(redacted.Error(), "secret") {
			t.Errorf("RedactError(%v) = %v", err, redacted)
		}
	}
	if got := reasonOf(egress.RedactError(fromClient)); got != egress.ReasonDNS {
		t.Errorf("the reason is lost: %v", got)
	}
	for text, want := range map[string]string{
		"http://receiver.example/secret":      "receiver.example:80",
		"https://receiver.example/secret":     "receiver.example:443",
		"https://[2001:db8::1]/secret":        "[2001:db8::1]:443",
		"https://receiver.example:444/secret": "receiver.example:444",
		"secret":                              "",
	} {
		err := egress.RedactError(&url.Error{URL: text, Err: context.DeadlineExceeded})
		unreachable, ok := errors.AsType[*egress.UnreachableError](err)
		if !ok || unreachable.Reason != egress.ReasonTimeout || unreachable.Endpoint != want {
			t.Errorf("timeout of the client for %q: %v", text, err)
		}
	}
	for _, err := range []error{nil, context.Canceled, egress.ErrNoHost} {
		if got := egress.RedactError(err); !errors.Is(got, err) {
			t.Errorf("RedactError(%v) = %v", err, got)
		}
	}
}
