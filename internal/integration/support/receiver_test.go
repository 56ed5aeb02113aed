package support_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is a client's server. It verifies what arrives, and has the fault that a case needs.
type receiver struct {
	t       testing.TB
	server  *httptest.Server
	address string // without a scheme

	mu       sync.Mutex
	key      string
	fault    func(w http.ResponseWriter, r *http.Request) (isFaulty bool) // nil: none
	isCut    bool                                                         // refuses connections, as a firewall does
	expired  bool                                                         // its certificate
	accepted map[string]bool
}

const path = "/in?token=t0ken"

// listen starts a receiver at an address, which can be of a receiver that was stopped.
func (r *receiver) listen(address string) {
	r.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = listener.Addr().String()
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	_ = r.server.Listener.Close()
	r.server.Listener = cutter{listener, r}
}

// cutter closes connections while the receiver is cut off.
type cutter struct {
	net.Listener
	r *receiver
}

// Accept implements [net.Listener].
func (c cutter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c.r.mu.Lock()
		isCut := c.r.isCut
		c.r.mu.Unlock()
		if !isCut {
			return conn, nil
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{t: t, accepted: make(map[string]bool)}
	r.listen("127.0.0.1:0")
	r.server.Start()
	t.Cleanup(func() { r.server.Close() })
	return r
}

func (r *receiver) url() string { return r.server.URL + path }

// secure makes the receiver serve https.
func (r *receiver) secure() {
	r.server.Close()
	r.listen("127.0.0.1:0")
	r.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		until := time.Now().Add(time.Hour)
		if r.expired {
			until = time.Now().Add(-time.Hour)
		}
		c, err := certificate(until)
		if err != nil {
			return nil, err
		}
		return &tls.Config{Certificates: []tls.Certificate{*c}}, nil
	}}
	r.server.StartTLS()
}

// stop stops the server, and start starts it again at its address.
func (r *receiver) stop() { r.server.Close() }

func (r *receiver) start() {
	r.listen(r.address)
	r.server.Start()
}

// set changes the receiver while it serves.
func (r *receiver) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	fault, key := r.fault, r.key
	r.mu.Unlock()
	if fault != nil && fault(w, req) {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	verifier, err := standardwebhooks.NewWebhook(key)
	if err != nil || verifier.Verify(body, req.Header) != nil {
		http.Error(w, "invalid signature", http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted[string(body)] = true
	w.WriteHeader(http.StatusNoContent)
}

// got returns how many notifications have arrived.
func (r *receiver) got(bodies []string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range bodies {
		if r.accepted[body] {
			n++
		}
	}
	return n
}

// authority signs the certificates of receivers. SSL_CERT_FILE names it.
var authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority makes the authority, and returns its certificate as PEM.
func newAuthority() (text []byte, err error) {
	if authority.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, authority.key.Public(), authority.key)
	if err != nil {
		return nil, err
	}
	if authority.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// certificate returns one that ends at a time.
func certificate(until time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "receiver"}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
