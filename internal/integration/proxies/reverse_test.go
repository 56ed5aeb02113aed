package proxies_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// README
func newProxy(service *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(service)
		pr.Out.Host = pr.In.Host
		pr.SetXForwarded()
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isHook := strings.HasPrefix(r.URL.Path, "/hooks/")
		if isHook && r.Method == http.MethodDelete && r.ProtoMajor == 2 && r.Header["Content-Length"] != nil {
			http.Error(w, "a DELETE has no Content-Length", http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// end

// serveProxy serves a proxy in front of a service.
func serveProxy(t testing.TB, o webhookcfg.Options, newProxy func(service *url.URL) http.Handler, start func(*httptest.Server)) (running, *httptest.Server) {
	t.Helper()
	o.BasePath = base
	s := pathtest.New(t, o)
	proxy := httptest.NewUnstartedServer(newProxy(&url.URL{Scheme: "http", Host: serve(t, s), Path: "/"}))
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	log.SetOutput(io.Discard) // of the proxy
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	start(proxy)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections) // close these after the requests have ended
	t.Cleanup(proxy.Close)
	return running{s, proxy.URL, nil}, proxy
}

// TestReverseProxy: the proxy of net/http/httputil passes the path on, over HTTP/2 too.
func TestReverseProxy(t *testing.T) {
	t.Run("HTTP/1", func(t *testing.T) {
		r, _ := serveProxy(t, webhookcfg.Options{}, newProxy, (*httptest.Server).Start)
		expect(t, "SetURL", r.Check(t, r.url+base, nil), "")
		r.ExpectForwarded(t, r.url+base)
		r.ExpectEffects(t, r.url+base, pathtest.Tolerance{Forgives: anotherForm}, pathtest.Scopes...)
	})
	t.Run("HTTP/2", func(t *testing.T) {
		r, proxy := serveProxy(t, webhookcfg.Options{}, newProxy, func(proxy *httptest.Server) {
			proxy.EnableHTTP2 = true
			proxy.StartTLS()
		})
		r.tls = proxy.Client().Transport.(*http.Transport).TLSClientConfig
		expect(t, "SetURL, TLS", r.Check(t, r.url+base, r.tls), "")
		r.expectBodies(t, []string{"length 0"})
	})
}

// TestReverseProxyAlternatives: if a mux or a function of the host changes the path, the
// proxy doesn't pass it on. The handler refuses cleaned paths if it knows the original
// target. No option helps against a mux's redirects.
func TestReverseProxyAlternatives(t *testing.T) {
	simple := func(rewrite func(*httputil.ProxyRequest, *url.URL)) func(*url.URL) http.Handler {
		return func(service *url.URL) http.Handler {
			return &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
				pr.Out.Header.Set("X-Original-URI", pr.In.RequestURI)
				rewrite(pr, service)
			}}
		}
	}
	for _, tt := range []struct {
		name     string
		newProxy func(service *url.URL) http.Handler
		guarded  string // a class of requests that fails with the options
	}{
		{"in a mux", func(service *url.URL) http.Handler {
			mux := http.NewServeMux()
			mux.Handle(base+"/", simple(func(pr *httputil.ProxyRequest, service *url.URL) { pr.SetURL(service) })(service))
			return mux
		}, "dots"},
		{"JoinPath", simple(func(pr *httputil.ProxyRequest, service *url.URL) {
			pr.Out.URL = service.JoinPath(pr.In.URL.Path)
		}), ""},
		{"path.Clean", simple(func(pr *httputil.ProxyRequest, service *url.URL) {
			pr.SetURL(service)
			pr.Out.URL.Path, pr.Out.URL.RawPath = path.Clean(pr.In.URL.Path), ""
		}), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := serveProxy(t, webhookcfg.Options{}, tt.newProxy, (*httptest.Server).Start)
			expect(t, tt.name, r.Check(t, r.url+base, nil), "dots")
			r, _ = serveProxy(t, original, tt.newProxy, (*httptest.Server).Start)
			expect(t, tt.name+", guarded", r.Check(t, r.url+base, nil), tt.guarded)
			if tt.guarded == "" {
				r.ExpectEffects(t, r.url+base, pathtest.Tolerance{Cleans: true}, pathtest.Scopes...)
			}
		})
	}
}
