package egress_test

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// link is a certificate of an authority, with its key.
type link struct {
	*x509.Certificate
	key crypto.Signer
}

func newLink(t *testing.T, name string, key crypto.Signer, issuer *link, changes ...func(*x509.Certificate)) *link {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	for _, change := range changes {
		change(template)
	}
	if issuer == nil {
		issuer = &link{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &link{cert, key}
}

// asReceiver makes a certificate one for a receiver.
func asReceiver(cert *x509.Certificate) {
	cert.DNSNames, cert.IsCA = []string{receiverName}, false
}

func newECDSA(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// publicKey is the key of an authority that signs nothing.
type publicKey struct {
	crypto.Signer
	public crypto.PublicKey
}

func (k publicKey) Public() crypto.PublicKey { return k.public }

// rsaKey returns a key without its factors.
func rsaKey(bits uint) crypto.Signer {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return publicKey{public: &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}}
}

// probeChain probes a receiver that sends a chain of certificates.
func probeChain(t *testing.T, key crypto.Signer, chain []*link, roots ...*link) error {
	t.Helper()
	sent := tls.Certificate{PrivateKey: key}
	for _, link := range chain {
		sent.Certificate = append(sent.Certificate, link.Raw)
	}
	receiver := listen(t)
	receiver.serveReading(serverConfig(sent))
	policy := newLoopback(nil)
	policy.RootCAs = x509.NewCertPool()
	for _, root := range roots {
		policy.RootCAs.AddCert(root.Certificate)
	}
	return newProber(t, policy, nil).Probe(t.Context(), "client", egress.NewURL(receiver.at("https", receiverName)))
}

// chainOf returns a root, and a chain of n certificates without it. The first is the
// receiver's.
func chainOf(t *testing.T, n int, key crypto.Signer) (root *link, chain []*link) {
	t.Helper()
	root = newLink(t, "root", newKey(t), nil)
	last := root
	for i := range n - 1 {
		last = newLink(t, fmt.Sprint("authority ", i), newKey(t), last)
		chain = append(chain, last)
	}
	chain = append(chain, newLink(t, "", key, last, asReceiver))
	slices.Reverse(chain)
	return root, chain
}

// TestChain: we verify a receiver's certificates only if that's cheap.
func TestChain(t *testing.T) {
	key, small, large := newKey(t), newECDSA(t, elliptic.P384()), newECDSA(t, elliptic.P521())

	longest, eight := chainOf(t, 8, key)
	tooLong, nine := chainOf(t, 9, key)
	root := newLink(t, "root", newKey(t), nil)
	other := newLink(t, "another root", key, nil)
	largeRoot := newLink(t, "root", large, nil)
	crossed := newLink(t, "authority", key, root)
	over := func(authority *link) []*link {
		return []*link{newLink(t, "", key, authority, asReceiver), authority}
	}
	wide := newLink(t, "", key, root, asReceiver, func(cert *x509.Certificate) {
		for i := range 1000 {
			cert.DNSNames = append(cert.DNSNames, fmt.Sprintf("%d.receiver.example", i))
		}
	})

	const (
		reachable  = ""
		unknown    = "unknown authority" // the authority was left out
		considered = "candidate"         // it wasn't
	)
	for _, test := range []struct {
		name  string
		chain []*link
		root  *link
		want  string
	}{
		{"eight", eight, longest, reachable},
		{"nine", nine, tooLong, "too many certificates"},
		{"as many again", append(eight[:8:8], eight[0]), longest, "too many certificates"},
		{"cross-signed", append(over(newLink(t, "authority", key, other)), crossed), root, reachable},
		{"P-384", over(newLink(t, "authority", small, root)), root, reachable},
		{"P-521", over(newLink(t, "authority", large, root)), root, unknown},
		{"root of P-521", over(largeRoot), largeRoot, reachable},
		{"root of P-521 that isn't sent", over(largeRoot)[:1], largeRoot, reachable},
		{"RSA of 4096 bits", []*link{over(root)[0], newLink(t, "root", rsaKey(4096), root)}, other, considered},
		{"RSA of 4097 bits", []*link{over(root)[0], newLink(t, "root", rsaKey(4097), root)}, other, unknown},
		{"more than 16 KiB", []*link{wide}, root, "handshake that is too long"},
	} {
		err := probeChain(t, key, test.chain, test.root)
		if test.want == reachable {
			if err != nil {
				t.Errorf("%s: %v", test.name, errors.Unwrap(err))
			}
			continue
		}
		cause := fmt.Sprint(errors.Unwrap(err))
		if test.want == unknown && strings.Contains(cause, considered) {
			t.Errorf("%s: %s", test.name, cause)
		}
		_, verified := errors.AsType[*tls.CertificateVerificationError](err)
		want := egress.ReasonTLS
		if test.want == unknown || test.want == considered {
			want = egress.ReasonUnknownAuthority
		}
		if reasonOf(err) != want || verified != (want == egress.ReasonUnknownAuthority) || !strings.Contains(cause, test.want) {
			t.Errorf("%s: %v, verified %t, because %s", test.name, err, verified, cause)
		}
	}
}

// TestAliases: authorities that could all have signed each other aren't tried in every order.
// That would end only at crypto/x509's limit of a hundred checks.
func TestAliases(t *testing.T) {
	key := newKey(t)
	var chain []*link
	for i := range 7 {
		chain = append(chain, newLink(t, "authority", key, nil, func(cert *x509.Certificate) {
			cert.DNSNames = []string{fmt.Sprintf("%d.example", i)}
		}))
	}
	chain = append([]*link{newLink(t, "", key, chain[0], asReceiver)}, chain...)
	err := probeChain(t, key, chain, newLink(t, "root", key, nil))
	if cause := fmt.Sprint(errors.Unwrap(err)); !strings.Contains(cause, "unknown authority") {
		t.Errorf("%v, because %s", err, cause)
	}
}

// TestCloseDoesNotWait: a connection is closed at once even if its receiver reads nothing.
// net/http closes idle connections under a lock that every request takes.
func TestCloseDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		config := ca.valid(t, receiverName)
		policy := inMemory(t, ca, func(conn net.Conn) {
			secured := tls.Server(conn, config)
			_, _ = http.ReadRequest(bufio.NewReader(secured))
			_, _ = io.WriteString(secured, "HTTP/1.1 204 No Content\r\n\r\n")
			<-t.Context().Done()
		})
		client := newClient(t, policy)
		if _, err := get(t, client, "https://"+receiverName+"/"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		client.CloseIdleConnections()
		if took := time.Since(start); took > 0 {
			t.Errorf("closing took %v", took)
		}
	})
}

// TestLargeBody: neither small records nor many large ones count as records without data.
func TestLargeBody(t *testing.T) {
	ca := newAuthority(t)
	receiver := serve(t, ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(make([]byte, 10<<20))
	}))
	resp, err := get(t, newClient(t, newLoopback(ca)), receiver.at("https", receiverName))
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := egress.ReadBody(resp, 1<<30)
	if len(body) != 1000+(10<<20) || err != nil {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// TestRecordsWithoutData: key updates between the bytes of a response end the connection long
// before they've cost much.
func TestRecordsWithoutData(t *testing.T) {
	for _, receiver := range hostile.Receivers(t) {
		if receiver.Name != "TLS: key updates in a body" {
			continue
		}
		policy := egress.Development()
		policy.RootCAs = receiver.Roots
		err := post(t.Context(), newClient(t, policy), receiver.Start(t).URL, nil, readAll)
		cause := fmt.Sprint(errors.Unwrap(err))
		if !strings.Contains(cause, "too many records without data") {
			t.Errorf("%v, because %s", err, cause)
		}
		return
	}
	t.Error("no such receiver")
}
