// Package proxies_test tests mounts of the handler behind real proxies. With the lines in
// examples/mounts/README.md, no request for one entity reaches all of them. With other common
// lines, some do.
package proxies_test

import (
	"crypto/tls"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

const base = "/hooks"

// mount is a way to put a proxy in front of the service at 127.0.0.1:8080.
type mount struct {
	proxy, lines string
	lengths      string   // lines that refuse false lengths of bodies, for TLS
	strips       bool     // the handler has no base path
	fails        string   // a class of requests that fails; "" if all pass
	refuses      []string // well-formed requests that the proxy refuses: targets, or names of bodies
	forgives     []string // malformed targets that it treats as requests for all
	options      webhookcfg.Options
}

// original has the options that you need behind a proxy that cleans paths, but passes on the
// target that it received.
var original = webhookcfg.Options{
	AllScope:       webhookcfg.AllScopeExact,
	OriginalTarget: webhookcfg.TargetFromHeader("X-Original-URI"),
}

// anotherForm are targets for all entities in a form that isn't allowed. Proxies in Go
// convert them.
var anotherForm = []string{"http:/hooks/api/v1/configure/configure-webhook"}

// safe are the mounts in the README.
var safe = []mount{
	{
		proxy: "nginx", lines: "location ^~ /hooks/ {\n\tproxy_pass http://127.0.0.1:8080;\n\tproxy_set_header Host $http_host;\n\tproxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n}",
		refuses: []string{"trailers"},
	},
	{
		proxy: "Apache httpd", lines: `AllowEncodedSlashes NoDecode
MergeSlashes Off
RewriteEngine On
RewriteCond %{THE_REQUEST} "^\S+ (?!/hooks/[^/])"
RewriteRule ^/+hooks/ - [F]
ProxyPreserveHost On
ProxyPass "/hooks/" "http://127.0.0.1:8080/hooks/" nocanon`,
		lengths: `RewriteCond %{THE_REQUEST} "^DELETE .* HTTP/2"
RewriteCond %{HTTP:Content-Length} .
RewriteRule ^/hooks/ - [F]`,
		refuses: []string{"http://test/hooks/api/v1/configure/configure-webhook/", "length 0"},
	},
	{
		proxy: "HAProxy", lines: "option forwardfor # and no http-request line that changes the path",
		lengths: "http-request deny if METH_DELETE HTTP_2.0 { path_beg /hooks/ } { req.fhdr(content-length) -m found }",
		refuses: []string{"length 0"},
	},
	{proxy: "Varnish", lines: "sub vcl_recv { if (req.url ~ \"^/hooks/\") { return (pass); } }"},
	{proxy: "Squid", lines: "uri_whitespace deny\ncache_peer 127.0.0.1 parent {upstream} 0 no-query originserver login=PASSTHRU"},
	{
		proxy: "Caddy", lines: "reverse_proxy /hooks/* 127.0.0.1:8080",
		lengths: `@length {
	path /hooks/*
	method DELETE
	protocol http/2
	header Content-Length *
}
respond @length 400`,
		refuses:  []string{"length 0"},
		forgives: anotherForm,
	},
}

// alternatives are mounts that aren't in the README, or that it tells you to avoid.
var alternatives = []mount{
	{proxy: "nginx", lines: "location /hooks/ { proxy_pass http://127.0.0.1:8080$request_uri; }"},
	{proxy: "nginx", lines: "location /hooks/ { proxy_pass http://127.0.0.1:8080/hooks/; }", fails: "dots"},
	{proxy: "nginx", lines: "location /hooks/ { proxy_pass http://127.0.0.1:8080/; }", strips: true, fails: "dots"},
	{proxy: "nginx", lines: "location /hooks/ { rewrite ^/hooks(/.*)$ $1 break; proxy_pass http://127.0.0.1:8080; }", strips: true, fails: "dots"},
	{proxy: "nginx", lines: "location /hooks/ { proxy_pass http://127.0.0.1:8080$uri; }", fails: "query"},
	{proxy: "nginx", lines: "rewrite ^/(.*)$ /$1;\nlocation ^~ /hooks/ { proxy_pass http://127.0.0.1:8080; }", fails: "dots"},
	{proxy: "Apache httpd", lines: `ProxyPass "/hooks/" "http://127.0.0.1:8080/hooks/"`, fails: "dots"},
	{proxy: "Apache httpd", lines: `ProxyPass "/hooks/" "http://127.0.0.1:8080/"`, strips: true, fails: "dots"},
	{proxy: "Apache httpd", lines: "RewriteEngine On\nRewriteRule \"^/hooks/(.*)$\" \"http://127.0.0.1:8080/hooks/$1\" [P]", fails: "dots"},
	{proxy: "Apache httpd", lines: "AllowEncodedSlashes NoDecode\nMergeSlashes Off\nProxyPass \"/hooks/\" \"http://127.0.0.1:8080/hooks/\" nocanon", fails: "absolute form"},
	{proxy: "HAProxy", lines: "http-request replace-path /hooks(/.*) \\1", strips: true},
	{proxy: "HAProxy", lines: "http-request normalize-uri path-strip-dotdot", fails: "dots"},
	{proxy: "HAProxy", lines: "http-request normalize-uri path-merge-slashes", fails: "slashes"},
	{proxy: "HAProxy", lines: "http-request set-uri %[path]", fails: "query"},
	{proxy: "lighttpd", lines: `proxy.server = ( "/hooks/" => (( "host" => "127.0.0.1", "port" => {upstream} )) )`, fails: "dots"},
	{proxy: "lighttpd", lines: `server.http-parseopts = ( "url-normalize" => "disable" )
proxy.server = ( "/hooks/" => (( "host" => "127.0.0.1", "port" => {upstream} )) )`, fails: "fragment"},
	{proxy: "Varnish", lines: "sub vcl_recv { set req.url = regsub(req.url, \"^/hooks\", \"\"); return (pass); }", strips: true},
	{proxy: "Varnish", lines: "sub vcl_recv { set req.url = regsuball(req.url, \"//+\", \"/\"); return (pass); }", fails: "slashes"},
	{proxy: "Caddy", lines: "handle /hooks/* {\n\treverse_proxy 127.0.0.1:8080\n}"},
	{proxy: "Caddy", lines: "handle_path /hooks/* {\n\treverse_proxy 127.0.0.1:8080\n}", strips: true, fails: "dots"},
	{proxy: "Caddy", lines: "uri strip_prefix /hooks\nreverse_proxy 127.0.0.1:8080", strips: true, fails: "dots"},
}

// guarded are mounts that clean paths, but pass with the handler's options.
var guarded = []mount{
	{proxy: "nginx", strips: true, options: original, lines: `location /hooks/ {
	proxy_pass http://127.0.0.1:8080/;
	proxy_set_header X-Original-URI $request_uri;
}`},
	{proxy: "nginx", strips: true, options: original, lines: `location /hooks/ {
	rewrite ^/hooks(/.*)$ $1 break;
	proxy_pass http://127.0.0.1:8080;
	proxy_set_header X-Original-URI $request_uri;
}`},
	{proxy: "nginx", options: original, lines: `location /hooks/ {
	proxy_pass http://127.0.0.1:8080$uri;
	proxy_set_header X-Original-URI $request_uri;
}`},
	{proxy: "Apache httpd", strips: true, options: original, lines: `RewriteEngine On
RewriteCond %{THE_REQUEST} "^\S+ (\S+)"
RewriteRule ^ - [E=TARGET:%1]
RequestHeader set X-Original-URI "%{TARGET}e"
ProxyPass "/hooks/" "http://127.0.0.1:8080/"`},
	{proxy: "Apache httpd", options: original, lines: `RewriteEngine On
RewriteCond %{THE_REQUEST} "^\S+ (\S+)"
RewriteRule ^ - [E=TARGET:%1]
RequestHeader set X-Original-URI "%{TARGET}e"
RewriteRule "^/hooks/(.*)$" "http://127.0.0.1:8080/hooks/$1" [P]`},
	{proxy: "Apache httpd", options: original, lines: `AllowEncodedSlashes NoDecode
MergeSlashes Off
RewriteEngine On
RewriteCond %{THE_REQUEST} "^\S+ (\S+)"
RewriteRule ^ - [E=TARGET:%1]
RequestHeader set X-Original-URI "%{TARGET}e"
ProxyPass "/hooks/" "http://127.0.0.1:8080/hooks/" nocanon`},
	{proxy: "HAProxy", options: original, lines: `http-request set-header X-Original-URI %[url]
	http-request normalize-uri path-strip-dotdot
	http-request normalize-uri path-strip-dot
	http-request normalize-uri path-merge-slashes
	http-request set-uri %[path]`},
	{proxy: "Caddy", strips: true, options: original, lines: `handle_path /hooks/* {
	reverse_proxy 127.0.0.1:8080 {
		header_up X-Original-URI {http.request.orig_uri}
	}
}`},
	{proxy: "Caddy", strips: true, options: original, lines: `uri strip_prefix /hooks
reverse_proxy 127.0.0.1:8080 {
	header_up X-Original-URI {http.request.orig_uri}
}`},
	{proxy: "Varnish", options: original, lines: `sub vcl_recv {
	set req.http.X-Original-URI = req.url;
	set req.url = regsuball(req.url, "//+", "/");
	return (pass);
}`},
	{
		proxy: "lighttpd", options: webhookcfg.Options{AllScope: webhookcfg.AllScopeRefused},
		lines: `proxy.server = ( "/hooks/" => (( "host" => "127.0.0.1", "port" => {upstream} )) )`,
	},
}

// running is a mount while it serves.
type running struct {
	*pathtest.Service
	url string // of the proxy
	tls *tls.Config
}

// serve serves a service until the test ends, and returns its address.
func serve(t testing.TB, s *pathtest.Service) (address string) {
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would get a line for each malformed request
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// start starts the service of a mount and its proxy.
func (m mount) start(t testing.TB, cert *certificate) running {
	t.Helper()
	o := m.options
	if !m.strips {
		o.BasePath = base
	}
	s := pathtest.New(t, o)
	return running{s, programs[m.proxy].start(t, m.lines, serve(t, s), cert), cert.client()}
}

func (m mount) check(t testing.TB, cert *certificate) mounttest.Report {
	t.Helper()
	r := m.start(t, cert)
	return r.Check(t, r.url+base, r.tls)
}

// TestSafe: the mounts in the README pass, over HTTP/2 too if the proxy speaks it.
func TestSafe(t *testing.T) {
	cert := newCertificate(t)
	for _, m := range safe {
		t.Run(m.proxy, func(t *testing.T) {
			r := m.start(t, nil)
			report := r.Check(t, r.url+base, nil)
			if len(report.Failures) > 0 {
				t.Error(report)
			}
			t.Log(report.NotChecked)
			r.ExpectForwarded(t, r.url+base)
			r.ExpectEffects(t, r.url+base, pathtest.Tolerance{Refuses: m.refuses, Forgives: m.forgives}, pathtest.Scopes...)
		})
		if programs[m.proxy].tls != "" {
			t.Run(m.proxy+", TLS", func(t *testing.T) {
				m.lines += "\n" + m.lengths
				r := m.start(t, cert)
				if report := r.Check(t, r.url+base, r.tls); len(report.Failures) > 0 || !report.HTTP2 {
					t.Errorf("HTTP/2: %t, %v", report.HTTP2, report)
				}
				r.expectBodies(t, m.refuses)
			})
		}
	}
}

// TestAlternatives: the other mounts fail. If one passes, we should move it to the README.
func TestAlternatives(t *testing.T) {
	for _, m := range alternatives {
		t.Run(m.proxy, func(t *testing.T) { expect(t, m.lines, m.check(t, nil), m.fails) })
	}
}

// TestGuarded: the handler refuses paths that a proxy cleaned, if it knows the original
// target. Without the options, the same lines fail.
func TestGuarded(t *testing.T) {
	cert := newCertificate(t)
	for _, m := range guarded {
		t.Run(m.proxy, func(t *testing.T) {
			r := m.start(t, nil)
			expect(t, m.lines, r.Check(t, r.url+base, nil), "")
			scopes := pathtest.Scopes
			if m.options.OriginalTarget == nil {
				scopes = []webhookcfg.AllScope{m.options.AllScope} // the only one that helps
			}
			r.ExpectEffects(t, r.url+base, pathtest.Tolerance{Cleans: true}, scopes...)
			if programs[m.proxy].tls != "" {
				expect(t, m.lines+", TLS", m.check(t, cert), "")
			}
			m.options = webhookcfg.Options{}
			if report := m.check(t, nil); len(report.Failures) == 0 {
				t.Error("passes without the options")
			}
		})
	}
}

// expect checks that a report has failures of a class, or none.
func expect(t testing.TB, mount string, report mounttest.Report, class string) {
	t.Helper()
	isClass := func(f mounttest.Failure) bool { return f.Class == class }
	t.Logf("%s: %d of %d requests failed", mount, len(report.Failures), report.Requests)
	switch {
	case class == "" && len(report.Failures) > 0:
		t.Error(report)
	case class != "" && !slices.ContainsFunc(report.Failures, isClass):
		t.Errorf("no failure of class %s", class)
	}
}

// TestReadme: the README shows the lines of every safe mount, the ones that pass on the
// original target, and the ones that need another option. The first README shows those for
// nginx in one line.
func TestReadme(t *testing.T) {
	text := readFile(t, "../../../examples/mounts/README.md")
	for _, m := range safe {
		for _, lines := range []string{m.lines, m.lengths} {
			if lines = strings.ReplaceAll(lines, "{upstream}", "8080"); !strings.Contains(text, lines) {
				t.Errorf("%s: the README does not show\n%s", m.proxy, lines)
			}
		}
	}
	if line := strings.Join(strings.Fields(safe[0].lines), " "); !strings.Contains(readFile(t, "../../../README.md"), line) {
		t.Errorf("the first README does not show\n%s", line)
	}
	_, rest, _ := strings.Cut(readFile(t, "reverse_test.go"), "// README\n")
	lines, _, found := strings.Cut(rest, "\n// end\n")
	if !found || !strings.Contains(text, lines) {
		t.Errorf("ReverseProxy: the README does not show\n%s", lines)
	}
	_, rest, _ = strings.Cut(rest, "pr.Out.Header")
	call, _, found := strings.Cut(rest, "\n")
	if !found || !strings.Contains(text, "pr.Out.Header"+call) {
		t.Errorf("ReverseProxy: the README does not show %s", call)
	}
	for _, m := range guarded {
		for line := range strings.Lines(m.lines) {
			line = strings.TrimSpace(strings.ReplaceAll(line, "{upstream}", "8080"))
			if needed := m.options.OriginalTarget == nil || strings.Contains(line, "X-Original-URI"); needed && !strings.Contains(text, line) {
				t.Errorf("%s: the README does not show\n%s", m.proxy, line)
			}
		}
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}
