package auth_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
)

func TestWithSource(t *testing.T) {
	trusted := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("2001:db8:1::/48"),
	}
	tests := []struct {
		name      string
		peer      string
		forwarded []string
		want      string // with trusted proxies; "" for no source
	}{
		{"connection", "192.0.2.1:80", nil, "192.0.2.1"},
		{"IPv6", "[2001:db8::1]:80", nil, "2001:db8::1"},
		{"mapped", "[::ffff:192.0.2.1]:80", nil, "192.0.2.1"},
		{"zone", "[fe80::1%eth0]:80", nil, "fe80::1"},
		{"Unix socket", "@", []string{"192.0.2.1"}, ""},
		{"nothing", "", nil, ""},

		{"spoofed", "192.0.2.1:80", []string{"198.51.100.1"}, "192.0.2.1"},
		{"proxy without field", "10.0.0.1:80", nil, "10.0.0.1"},
		{"proxy with empty field", "10.0.0.1:80", []string{""}, "10.0.0.1"},
		{"proxied", "10.0.0.1:80", []string{"198.51.100.1"}, "198.51.100.1"},
		{"mapped proxy", "[::ffff:10.0.0.1]:80", []string{"198.51.100.1"}, "198.51.100.1"},
		{"proxied IPv6", "[2001:db8:1::1]:80", []string{"2001:db8:2::1"}, "2001:db8:2::1"},
		{"with port", "10.0.0.1:80", []string{"198.51.100.1:1234"}, "198.51.100.1"},
		{"IPv6 with port", "10.0.0.1:80", []string{"[2001:db8:2::1]:1234"}, "2001:db8:2::1"},
		{"proxied and spoofed", "10.0.0.1:80", []string{"203.0.113.7, 198.51.100.1"}, "198.51.100.1"},
		{"spoofed trusted address", "10.0.0.1:80", []string{"10.9.9.9, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:80", []string{"203.0.113.7,198.51.100.1 ,\t10.0.0.2"}, "198.51.100.1"},
		{"two fields", "10.0.0.1:80", []string{"203.0.113.7", "198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"two fields, all trusted behind", "10.0.0.1:80", []string{"203.0.113.7, 198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"trusted all the way", "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"malformed", "10.0.0.1:80", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		{"malformed further on", "10.0.0.1:80", []string{"198.51.100.1, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"malformed beyond", "10.0.0.1:80", []string{"garbage, 198.51.100.1"}, "198.51.100.1"},
		{"trailing comma", "10.0.0.1:80", []string{"198.51.100.1,"}, "10.0.0.1"},
		{"long", "10.0.0.1:80", []string{strings.Repeat("203.0.113.7,", 50_000) + "198.51.100.1"}, "198.51.100.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sourceOf(tt.peer, tt.forwarded, trusted...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			// Without trusted proxies the field is ignored.
			if got, want := sourceOf(tt.peer, tt.forwarded), sourceOf(tt.peer, nil); got != want {
				t.Errorf("without trusted proxies got %q, want %q", got, want)
			}
		})
	}
}

func sourceOf(peer string, forwarded []string, trusted ...netip.Prefix) (source string) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	r.Header["X-Forwarded-For"] = forwarded
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if addr, ok := auth.SourceAddr(r.Context()); ok {
			source = addr.String()
		}
	})
	mustWithSource(trusted...)(next).ServeHTTP(nil, r)
	return source
}

func mustWithSource(trusted ...netip.Prefix) func(http.Handler) http.Handler {
	middleware, err := auth.WithSource(nil, trusted...)
	if err != nil {
		panic(err)
	}
	return middleware
}

// TestWithSourceRefuses a network that contains no source, or that you can't have meant.
func TestWithSourceRefuses(t *testing.T) {
	for _, network := range []netip.Prefix{
		{},
		netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33),
		netip.MustParsePrefix("::ffff:10.0.0.0/104"),
		netip.MustParsePrefix("10.0.0.1/8"),
		netip.MustParsePrefix("2001:db8::1/64"),
	} {
		if _, err := auth.WithSource(nil, netip.MustParsePrefix("192.0.2.1/32"), network); err == nil || !strings.Contains(err.Error(), network.String()) {
			t.Errorf("%v has bits of a host: got %v, want an error that names it", network, err)
		}
	}
}

// TestWithSourceWarns: once, if the proxies and what they send don't fit. The sign-in form of a
// page has no Authorization, and a proxy's own health checks don't count.
func TestWithSourceWarns(t *testing.T) {
	const missing, ignored = "sends no X-Forwarded-For", "X-Forwarded-For is ignored"
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	others := []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}
	for _, tt := range []struct {
		trusted                         []netip.Prefix
		peer, method, credentials, hops string
		want                            string
	}{
		{proxies, "10.0.0.1:80", "GET", "Basic x", "", missing},
		{proxies, "10.0.0.1:80", "POST", "", "", missing},
		{proxies, "10.0.0.1:80", "GET", "Basic x", "192.0.2.1", ""},
		{proxies, "10.0.0.1:80", "POST", "", "192.0.2.1", ""},
		{proxies, "10.0.0.1:80", "GET", "Basic x", "10.0.0.2", ""},
		{proxies, "10.0.0.1:80", "GET", "", "", ""},
		{proxies, "10.0.0.1:80", "HEAD", "", "", ""},
		{proxies, "192.0.2.1:80", "GET", "Basic x", "", ""},
		{proxies, "192.0.2.1:80", "POST", "", "198.51.100.1", ""},
		{others, "10.0.0.1:80", "POST", "", "198.51.100.1", ignored},
		{others, "172.16.0.1:80", "POST", "", "198.51.100.1, 10.0.0.1", ignored},
		{others, "172.16.0.1:80", "POST", "", "10.0.0.1", ""},
		{others, "172.16.0.1:80", "POST", "", "198.51.100.1, 192.0.2.1", ""},
		{others, "10.0.0.1:80", "POST", "Basic x", "", ""},
		{nil, "10.0.0.1:80", "GET", "", "192.0.2.1", ignored},
		{nil, "10.0.0.1:80", "POST", "Basic x", "", ""},
	} {
		var log strings.Builder
		withSource, err := auth.WithSource(slog.New(slog.NewTextHandler(&log, nil)), tt.trusted...)
		if err != nil {
			t.Fatal(err)
		}
		h := withSource(http.NotFoundHandler())
		for range 2 {
			r := httptest.NewRequest(tt.method, "/", nil)
			r.RemoteAddr = tt.peer
			for name, value := range map[string]string{"Authorization": tt.credentials, "X-Forwarded-For": tt.hops} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		want := min(1, len(tt.want))
		if strings.Count(log.String(), "level=WARN") != want || !strings.Contains(log.String(), tt.want) || want > 0 && !strings.Contains(log.String(), "proxy=10.0.0.1") {
			t.Errorf("%+v: log %q", tt, log.String())
		}
	}
}

func TestWithSourceCopiesItsPrefixes(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	var got netip.Addr
	h := mustWithSource(trusted...)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = auth.SourceAddr(r.Context()) }))
	trusted[0] = netip.MustParsePrefix("0.0.0.0/0")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:80"
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	h.ServeHTTP(nil, r)
	if got != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the source is %v, want the address of the connection", got)
	}
}

func TestWithSourceOverLoopback(t *testing.T) {
	server := httptest.NewServer(mustWithSource()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, ok := auth.SourceAddr(r.Context())
		fmt.Fprint(w, addr, ok)
	})))
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "127.0.0.1 true" {
		t.Errorf("the handler saw the source %q, %v, want 127.0.0.1", body, err)
	}
}

func TestSourceOfNothing(t *testing.T) {
	if addr, ok := auth.SourceAddr(context.Background()); ok || addr.IsValid() {
		t.Errorf("a context without a source has %v", addr)
	}
	if addr, ok := auth.SourceAddr(auth.ContextWithSource(context.Background(), netip.Addr{})); ok || addr.IsValid() {
		t.Errorf("a context with the zero address has the source %v", addr)
	}
}
