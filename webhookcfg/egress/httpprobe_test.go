package egress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// probeWith probes with plenty of time, which a busy machine can need.
func probeWith(t *testing.T, policy *egress.Policy, httpProbe egress.HTTPProbe, target string) error {
	t.Helper()
	prober := newProber(t, policy, &egress.ProberOptions{HTTPProbe: httpProbe, Timeout: time.Minute})
	return prober.Probe(t.Context(), "client", egress.NewURL(target))
}

func TestAnyResponse(t *testing.T) {
	ca := newAuthority(t)
	for _, method := range []string{"HEAD", "GET", "OPTIONS", "POST"} {
		for _, status := range []int{200, 204, 301, 400, 404, 405, 500, 503} {
			requests := make(chan *http.Request, 1)
			receiver := serve(t, ca, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests <- r
				w.WriteHeader(status)
			}))
			err := probeWith(t, newLoopback(ca), must(egress.AnyResponse(method)), receiver.at("https", receiverName))
			if err != nil {
				t.Errorf("%s with status %d: %v", method, status, err)
				continue
			}
			r := <-requests
			if r.Method != method || r.RequestURI != "/secret?token=secret" || !r.Close {
				t.Errorf("request %s %s, close %v", r.Method, r.RequestURI, r.Close)
			}
		}
	}
}

// TestEndlessResponse has a body that does not end.
func TestEndlessResponse(t *testing.T) {
	receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	err := probeWith(t, newLoopback(nil), must(egress.AnyResponse("GET")), receiver.at("http", receiverName))
	if err != nil {
		t.Errorf("Probe = %v", err)
	}
}

func TestAnyResponseMethods(t *testing.T) {
	for _, method := range []string{"", "get", "PUT", "DELETE", "CONNECT", "TRACE", "GET /", "GET\r\n"} {
		if _, err := egress.AnyResponse(method); err == nil {
			t.Errorf("AnyResponse(%q) gives no error", method)
		}
	}
}

func TestNoResponse(t *testing.T) {
	for name, response := range map[string]string{
		"nothing":     "",
		"another":     "SSH-2.0-OpenSSH_9.6\r\n",
		"long status": "HTTP/1.1 200 " + strings.Repeat("a", 32<<10),
	} {
		receiver := listen(t)
		receiver.serve(func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, response)
		})
		for _, httpProbe := range []egress.HTTPProbe{must(egress.AnyResponse("GET")), must(egress.Handshake("sender.example.com")), egress.Echo} {
			err := probeWith(t, newLoopback(nil), httpProbe, receiver.at("http", receiverName))
			if reasonOf(err) != egress.ReasonResponse {
				t.Errorf("%s: %v, want response", name, err)
			}
			for cause := err; cause != nil; cause = errors.Unwrap(cause) {
				if strings.Contains(cause.Error(), "secret") {
					t.Errorf("%s: the cause %q has the path", name, cause)
				}
			}
		}
	}
}

// TestHTTPProbeFailsBeforeHTTP expects the same reasons as without an HTTPProbe.
func TestHTTPProbeFailsBeforeHTTP(t *testing.T) {
	good := newAuthority(t)
	receiver := serve(t, good, http.NotFoundHandler())
	mixed := newLoopback(good)
	mixed.Resolver = resolveTo("127.0.0.1", "10.0.0.1")
	unknown := newLoopback(good)
	unknown.Resolver = unknownName
	for _, test := range []struct {
		policy *egress.Policy
		target string
		want   egress.Reason
	}{
		{newLoopback(good), receiver.at("https", "other.example"), egress.ReasonWrongName},
		{newLoopback(newAuthority(t)), receiver.at("https", receiverName), egress.ReasonUnknownAuthority},
		{newLoopback(good), "https" + noServer, egress.ReasonConnection},
		{mixed, receiver.at("https", receiverName), egress.ReasonDenied},
		{unknown, receiver.at("https", receiverName), egress.ReasonDNS},
	} {
		err := probeWith(t, test.policy, must(egress.AnyResponse("HEAD")), test.target)
		if got := reasonOf(err); got != test.want {
			t.Errorf("Probe = %v, want %v", err, test.want)
		}
	}
}

// TestUnavailableProbe: if the host fails, nobody blames the target.
func TestUnavailableProbe(t *testing.T) {
	receiver := serve(t, nil, http.NotFoundHandler())
	for _, failed := range []error{
		fmt.Errorf("no key: %w", egress.ErrUnavailable),
		fmt.Errorf("%w: %w", egress.ErrUnavailable, &url.Error{Op: "Get", URL: "https://keys.internal/", Err: errDialled}),
	} {
		httpProbe := func(context.Context, string, *http.Client, egress.URL) error { return failed }
		if err := probeWith(t, newLoopback(nil), httpProbe, receiver.at("http", receiverName)); err != failed {
			t.Errorf("Probe = %v, want %v", err, failed)
		}
	}
}

func TestHandshake(t *testing.T) {
	const origin = "sender.example.com"
	tests := []struct {
		name    string
		allowed []string
		status  int
		consent bool
	}{
		{"same origin", []string{origin}, 200, true},
		{"every origin", []string{"*"}, 200, true},
		{"no content", []string{origin}, 204, true},
		{"status is ignored", []string{origin}, 405, true},
		{"no field", nil, 200, false},
		{"empty", []string{""}, 200, false},
		{"another origin", []string{"other.example.com"}, 200, false},
		{"other letter case", []string{"Sender.example.com"}, 200, false},
		{"origin as a suffix", []string{"x" + origin}, 200, false},
		{"origin as a prefix", []string{origin + ".evil.example"}, 200, false},
		{"pattern", []string{"*.example.com"}, 200, false},
		{"list", []string{origin + ", other.example.com"}, 200, false},
		{"two fields", []string{origin, origin}, 200, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requests := make(chan *http.Request, 1)
			receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests <- r
				w.Header()["WebHook-Allowed-Origin"] = test.allowed
				w.WriteHeader(test.status)
			}))
			err := probeWith(t, newLoopback(nil), must(egress.Handshake(origin)), receiver.at("http", receiverName))
			if test.consent && err != nil || !test.consent && reasonOf(err) != egress.ReasonResponse {
				t.Errorf("Probe = %v", err)
			}
			r := <-requests
			if r.Method != http.MethodOptions || r.RequestURI != "/secret?token=secret" {
				t.Errorf("request %s %s", r.Method, r.RequestURI)
			}
			if got := r.Header.Values("WebHook-Request-Origin"); len(got) != 1 || got[0] != origin {
				t.Errorf("origin %q", got)
			}
		})
	}
}

// TestEcho: only the bare text, or an object with it and nothing else, is a consent.
func TestEcho(t *testing.T) {
	tests := []struct {
		name     string
		status   int
		response func(text, body string) string
		consent  bool
	}{
		{"text", 200, func(c, _ string) string { return c }, true},
		{"text and a line break", 201, func(c, _ string) string { return c + "\r\n" }, true},
		{"object", 200, func(c, _ string) string { return `{"echo":"` + c + `"}` }, true},
		{"object with white space", 200, func(c, _ string) string { return " {\n\t\"echo\" : \"" + c + "\"\n}\n" }, true},

		{"reflected request", 200, func(_, body string) string { return body }, false},
		{"reflected request, as a string", 200, func(_, body string) string { return fmt.Sprintf("%q", body) }, false},
		{"text in a page", 200, func(c, _ string) string { return "<p>" + c + "</p>" }, false},
		{"quoted text", 200, func(c, _ string) string { return `"` + c + `"` }, false},
		{"text twice", 200, func(c, _ string) string { return c + c }, false},
		{"part of the text", 200, func(c, _ string) string { return c[:len(c)-1] }, false},
		{"other letter case", 200, func(c, _ string) string { return strings.ToLower(c) }, false},
		{"repeated key", 200, func(c, _ string) string { return `{"echo":"` + c + `","echo":"` + c + `"}` }, false},
		{"another key", 200, func(c, _ string) string { return `{"Echo":"` + c + `"}` }, false},
		{"one more key", 200, func(c, _ string) string { return `{"echo":"` + c + `","ok":"true"}` }, false},
		{"two objects", 200, func(c, _ string) string { return `{"echo":"` + c + `"}{}` }, false},
		{"key of other protocols", 200, func(c, _ string) string { return `{"challenge":"` + c + `"}` }, false},
		{"array", 200, func(c, _ string) string { return `["` + c + `"]` }, false},
		{"empty", 200, func(string, string) string { return "" }, false},
		{"empty object", 200, func(string, string) string { return "{}" }, false},
		{"too long", 200, func(c, _ string) string { return c + strings.Repeat(" ", 200) }, false},
		{"redirect", 307, func(c, _ string) string { return c }, false},
		{"error", 404, func(c, _ string) string { return c }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requests := make(chan *http.Request, 1)
			receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests <- r
				body, _ := io.ReadAll(r.Body)
				var sent struct{ Type, Echo string }
				if err := json.Unmarshal(body, &sent); err != nil || sent.Type != "webhook.echo" || len(sent.Echo) != 26 {
					t.Errorf("body %q", body)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.response(sent.Echo, string(body)))
			}))
			err := probeWith(t, newLoopback(nil), egress.Echo, receiver.at("http", receiverName))
			if test.consent && err != nil || !test.consent && reasonOf(err) != egress.ReasonResponse {
				t.Errorf("Probe = %v", err)
			}
			r := <-requests
			if r.Method != http.MethodPost || r.RequestURI != "/secret?token=secret" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("request %s %s, %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"))
			}
			if agent := r.UserAgent(); agent != "go-webhookcfg" {
				t.Errorf("the User-Agent is %s", agent)
			}
		})
	}
}

// TestEchoOfOtherProtocols: servers that respond to the challenges of other protocols before they
// know who asks have agreed to nothing.
func TestEchoOfOtherProtocols(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, kind string, body map[string]string){
		"url_verification, text": func(w http.ResponseWriter, kind string, body map[string]string) {
			if kind == "url_verification" {
				_, _ = io.WriteString(w, body["challenge"])
			}
		},
		"url_verification, object": func(w http.ResponseWriter, kind string, body map[string]string) {
			if kind == "url_verification" {
				_ = json.NewEncoder(w).Encode(map[string]string{"challenge": body["challenge"]})
			}
		},
		"whatever has a challenge": func(w http.ResponseWriter, _ string, body map[string]string) {
			if text, ok := body["challenge"]; ok {
				_, _ = io.WriteString(w, text)
			}
		},
		"always": func(w http.ResponseWriter, _ string, body map[string]string) {
			_ = json.NewEncoder(w).Encode(map[string]string{"challenge": body["challenge"]})
		},
		"validation of a subscription": func(w http.ResponseWriter, _ string, body map[string]string) {
			_ = json.NewEncoder(w).Encode(map[string]string{"validationResponse": body["validationCode"]})
		},
	} {
		receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]string
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			handle(w, body["type"], body)
		}))
		if err := probeWith(t, newLoopback(nil), egress.Echo, receiver.at("http", receiverName)); reasonOf(err) != egress.ReasonResponse {
			t.Errorf("%s: Probe = %v", name, err)
		}
	}
}

func TestHandshakeOrigins(t *testing.T) {
	for _, origin := range []string{"", "*", "https://sender.example.com", "sender.example.com:443", "127.0.0.1", "::1", "a b", "a\r\nb", "a."} {
		if _, err := egress.Handshake(origin); err == nil {
			t.Errorf("Handshake(%q) gives no error", origin)
		}
	}
}

// TestHTTPProbeCompliesWithPolicy requests a URL that Check refuses.
func TestHTTPProbeCompliesWithPolicy(t *testing.T) {
	receiver := serve(t, nil, http.NotFoundHandler())
	policy := newLoopback(nil)
	policy.AllowHTTP = false
	plain := func(ctx context.Context, client string, httpClient *http.Client, _ egress.URL) error {
		return must(egress.AnyResponse("GET"))(ctx, client, httpClient, egress.NewURL(receiver.at("http", receiverName)))
	}
	err := probeWith(t, policy, plain, receiver.at("https", receiverName))
	if reasonOf(err) != egress.ReasonDenied || receiver.accepted.Load() != 0 {
		t.Errorf("Probe = %v", err)
	}
}

// TestCustomHTTPProbe uses probes as a host would write them.
func TestCustomHTTPProbe(t *testing.T) {
	receiver := serve(t, nil, http.NotFoundHandler())
	target := receiver.at("http", receiverName)
	unhappy := errors.New("unhappy with " + target)
	elsewhere := func(ctx context.Context, _ string, httpClient *http.Client, _ egress.URL) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://169.254.169.254/", nil)
		if err != nil {
			return err
		}
		resp, err := httpClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, test := range []struct {
		httpProbe egress.HTTPProbe
		want      egress.Reason
		cause     error
	}{
		{func(context.Context, string, *http.Client, egress.URL) error { return nil }, "", nil},
		{func(context.Context, string, *http.Client, egress.URL) error { return unhappy }, egress.ReasonResponse, unhappy},
		{elsewhere, egress.ReasonDenied, nil},
	} {
		err := probeWith(t, newLoopback(nil), test.httpProbe, target)
		if reasonOf(err) != test.want || test.cause != nil && !errors.Is(err, test.cause) {
			t.Errorf("Probe = %v, want %v", err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the text %q has the path", err)
		}
	}
}

// TestHTTPProbesAreNotSharedByClients: the result may depend on the client.
func TestHTTPProbesAreNotSharedByClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("denied")
		var calls atomic.Int32
		prober := newProber(t, newLoopback(nil), &egress.ProberOptions{
			HTTPProbe: func(_ context.Context, client string, _ *http.Client, _ egress.URL) error {
				calls.Add(1)
				time.Sleep(time.Second)
				if client == "b" {
					return denied
				}
				return nil
			},
		})
		results := map[string]<-chan error{}
		for _, client := range []string{"a", "b"} {
			results[client] = startProbe(t.Context(), prober, client, target)
		}
		again := startProbe(t.Context(), prober, "a", target)
		if err := <-results["a"]; err != nil {
			t.Errorf("client a: %v", err)
		}
		if err := <-results["b"]; !errors.Is(err, denied) {
			t.Errorf("client b: %v", err)
		}
		if err := <-again; err != nil || calls.Load() != 2 {
			t.Errorf("client a at the same time: %v, and %d calls", err, calls.Load())
		}
	})
}
