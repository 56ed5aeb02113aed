package egress_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// full lets every sender meet every hostile receiver. Without it, each meets a quarter of them.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

var _ egress.Resolver = net.DefaultResolver

// publicAddr is an address that the strict policy allows. No test connects to it.
const publicAddr = "93.184.216.34"

// resolverFunc resolves names without a network.
type resolverFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, net.UnknownNetworkError(network)
	}
	return f(ctx, host)
}

// resolveTo returns a resolver that resolves every name to the same addresses.
func resolveTo(texts ...string) egress.Resolver {
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		return parseAddrs(texts...), nil
	})
}

// resolveInTurn returns a resolver that returns one address after another, and then
// always the last one.
func resolveInTurn(each ...string) egress.Resolver {
	var mu sync.Mutex
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		text := each[0]
		if len(each) > 1 {
			each = each[1:]
		}
		return parseAddrs(text), nil
	})
}

// unknownName is a resolver that finds no name.
var unknownName = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
})

func parseAddrs(texts ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, text := range texts {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs
}

func noAddresses(context.Context) ([]netip.Addr, error) { return nil, nil }

// errDialled is the error of a recorder.
var errDialled = errors.New("dialled")

// recorder replaces the network: it records the addresses dialled, and fails.
type recorder struct {
	mu      sync.Mutex
	dialled []string
}

func (r *recorder) Dial(_ context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled = append(r.dialled, address)
	return nil, errDialled
}

// take returns the addresses dialled since the last call of take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.dialled
	r.dialled = nil
	return taken
}

// redirected returns a Dial that connects to the given address instead.
func redirected(to net.Addr) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to.String())
	}
}

// dialLoopback is a Dial that never leaves the machine, even if the policy is broken.
func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	if !netip.MustParseAddrPort(address).Addr().IsLoopback() {
		return nil, fmt.Errorf("dial of %s leaves the machine", address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func newProber(tb testing.TB, policy *egress.Policy, opts *egress.ProberOptions) *egress.Prober {
	tb.Helper()
	prober, err := policy.Prober(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return prober
}

func newTransport(tb testing.TB, policy *egress.Policy) *egress.Transport {
	tb.Helper()
	transport, err := policy.Transport(nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return transport
}

// post sends a request, and reads the response as read does.
func post(ctx context.Context, client *http.Client, url string, body []byte, read func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return read(resp)
}

func readSome(resp *http.Response) error {
	_, _, err := egress.ReadBody(resp, 100)
	return err
}

func readAll(resp *http.Response) error {
	_, _, err := egress.ReadBody(resp, 1<<60)
	return err
}

// reasonOf returns the reason in err, or "" if there is none.
func reasonOf(err error) egress.Reason {
	var unreachable *egress.UnreachableError
	if !errors.As(err, &unreachable) {
		return ""
	}
	return unreachable.Reason
}

// noServer is the rest of a URL that leads to no server. We don't use a closed port, because
// another process could open it.
const noServer = "://receiver.example:1/secret"

// lastLookup records the name that was looked up last.
type lastLookup struct{ host string }

func (l *lastLookup) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	l.host = host
	return parseAddrs(publicAddr), nil
}

// listener listens on loopback and counts its connections.
type listener struct {
	net.Listener
	accepted atomic.Int32
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

func listen(t *testing.T) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	return &listener{Listener: inner}
}

// at returns a URL with the given host and the port of the listener.
func (l *listener) at(scheme, host string) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return scheme + "://" + net.JoinHostPort(host, port) + "/secret?token=secret"
}

// serve calls handle for every connection, and closes it afterwards.
func (l *listener) serve(handle func(net.Conn)) {
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
}

// received is the data that one client sent until it closed the connection.
type received struct {
	bytes []byte
	err   error
}

// serveReading delivers the data of each connection; over TLS if config is not nil.
func (l *listener) serveReading(config *tls.Config) <-chan received {
	all := make(chan received, 16)
	l.serve(func(conn net.Conn) {
		if config != nil {
			conn = tls.Server(conn, config)
		}
		bytes, err := io.ReadAll(conn)
		all <- received{bytes, err}
	})
	return all
}

// authority signs the certificates of test servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	a.cert = sign(t, template, template, a.key, a.key)
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// certificate returns a certificate for a name or a literal address, valid until
// notAfter.
func (a *authority) certificate(t *testing.T, host string, notAfter time.Time) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		NotBefore:    notAfter.Add(-2 * time.Hour),
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	key := newKey(t)
	cert := sign(t, template, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// valid returns a server configuration with a certificate that is valid for an hour.
func (a *authority) valid(t *testing.T, host string) *tls.Config {
	t.Helper()
	return serverConfig(a.certificate(t, host, time.Now().Add(time.Hour)))
}

func serverConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
