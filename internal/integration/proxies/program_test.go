package proxies_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// program is a proxy whose configuration contains the lines of a mount. These are replaced in
// all texts: {port} with the port to listen on, {dir} with a directory, {root} with the
// package's directory, {upstream} with the service's port, and {file} with the configuration.
type program struct {
	daemon engine.Daemon
	args   []string
	config string // has {lines} and, if the proxy can do that, {tls}
	tls    string // {tls} for TLS with HTTP/2, which uses the files cert.pem, key.pem and both.pem
}

var programs = map[string]program{
	"nginx": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/nginx"}, Package: "nginx"},
		args:   []string{"-p", "{dir}", "-e", "stderr", "-c", "{file}"},
		config: `daemon off; master_process off; pid {dir}/pid; error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
	uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	server {
		listen 127.0.0.1:{port}{tls};
		{lines}
	}
}
`,
		tls: " ssl http2; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem",
	},
	"Apache httpd": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/apache2"}, Package: "apache2-bin"},
		args:   []string{"-DFOREGROUND", "-d", "{dir}", "-f", "{file}"},
		config: `ServerName localhost
PidFile "{dir}/pid"
DefaultRuntimeDir "{dir}"
Listen 127.0.0.1:{port}
Define modules "{root}/usr/lib/apache2/modules"
LoadModule mpm_event_module "${modules}/mod_mpm_event.so"
LoadModule authz_core_module "${modules}/mod_authz_core.so"
LoadModule proxy_module "${modules}/mod_proxy.so"
LoadModule proxy_http_module "${modules}/mod_proxy_http.so"
LoadModule rewrite_module "${modules}/mod_rewrite.so"
LoadModule headers_module "${modules}/mod_headers.so"
ErrorLog /dev/stderr
{tls}
{lines}
`,
		tls: `LoadModule ssl_module "${modules}/mod_ssl.so"
LoadModule http2_module "${modules}/mod_http2.so"
Protocols h2 http/1.1
SSLEngine on
SSLSessionCache none
SSLCertificateFile "{dir}/cert.pem"
SSLCertificateKeyFile "{dir}/key.pem"`,
	},
	"HAProxy": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/haproxy"}, Package: "haproxy"},
		args:   []string{"-db", "-f", "{file}"},
		config: `global
	expose-experimental-directives
	maxconn 100
defaults
	mode http
	timeout connect 10s
	timeout client 30s
	timeout server 30s
frontend clients
	bind 127.0.0.1:{port}{tls}
	{lines}
	default_backend service
backend service
	server service 127.0.0.1:{upstream}
`,
		tls: " ssl crt {dir}/both.pem alpn h2,http/1.1",
	},
	"lighttpd": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/lighttpd"}, Package: "lighttpd"},
		args:   []string{"-D", "-m", "{root}/usr/lib/lighttpd", "-f", "{file}"},
		config: `server.document-root = "{dir}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_proxy" )
{lines}
`,
	},
	"Varnish": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/varnishd"}, Package: "varnish"},
		args:   []string{"-F", "-a", "127.0.0.1:{port}", "-n", "{dir}/varnish", "-f", "{file}"},
		config: `vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "{upstream}"; }
{lines}
`,
	},
	"Squid": {
		daemon: engine.Daemon{Paths: []string{"usr/sbin/squid"}, Package: "squid"},
		args:   []string{"-N", "-d", "1", "-f", "{file}"},
		config: `http_port 127.0.0.1:{port} accel defaultsite=localhost
{lines}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
pid_filename none
coredump_dir {dir}
mime_table /dev/null
icon_directory {dir}
error_directory {dir}
pinger_enable off
unlinkd_program /bin/true
`,
	},
	"Caddy": {
		daemon: engine.Daemon{Paths: []string{"usr/bin/caddy"}, Package: "caddy"},
		args:   []string{"run", "--adapter", "caddyfile", "--config", "{file}"},
		config: `{
	admin off
	auto_https off
}
:{port} {
	{tls}
	{lines}
}
`,
		tls: "tls {dir}/cert.pem {dir}/key.pem",
	},
}

// start starts a proxy in front of a service and returns its URL.
func (p program) start(t testing.TB, lines, service string, cert *certificate) (url string) {
	t.Helper()
	_, upstream, err := net.SplitHostPort(service)
	if err != nil {
		t.Fatal(err)
	}
	p.daemon.Configure = func(i engine.Instance) ([]string, error) {
		scheme := ""
		if cert != nil {
			scheme = p.tls
		}
		text := strings.NewReplacer("{lines}", lines, "{tls}", scheme).Replace(p.config)
		values := []string{"{port}", i.Port, "{dir}", i.Dir, "{root}", strings.TrimSuffix(i.Root, "/"), "{upstream}", upstream, "127.0.0.1:8080", service}
		file, err := i.Write("configuration", strings.NewReplacer(values...).Replace(text))
		if cert != nil {
			err = errors.Join(err, cert.write(i))
		}
		var args []string
		for _, arg := range p.args {
			args = append(args, strings.NewReplacer(append(values, "{file}", file)...).Replace(arg))
		}
		return args, err
	}
	if cert != nil {
		return "https://" + p.daemon.Start(t)
	}
	return "http://" + p.daemon.Start(t)
}

// certificate is a certificate for 127.0.0.1.
type certificate struct {
	roots     *tls.Config
	cert, key []byte
}

func newCertificate(t testing.TB) *certificate {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &certificate{
		roots: server.Client().Transport.(*http.Transport).TLSClientConfig,
		cert:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		key:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}

// client returns a TLS configuration for clients, or nil without TLS.
func (c *certificate) client() *tls.Config {
	if c == nil {
		return nil
	}
	return c.roots
}

func (c *certificate) write(i engine.Instance) error {
	_, err1 := i.Write("cert.pem", string(c.cert))
	_, err2 := i.Write("key.pem", string(c.key))
	_, err3 := i.Write("both.pem", string(c.cert)+string(c.key))
	return errors.Join(err1, err2, err3)
}
