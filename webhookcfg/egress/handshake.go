package egress

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"net"
	"slices"
	"time"
)

// handshakeTimeout bounds a TLS handshake.
const handshakeTimeout = 10 * time.Second

// Limits of the certificates in a handshake. Certificates cost a receiver nothing, but us at
// least a signature check each, and we can't interrupt a verification.
const (
	maxHandshakeBytes = 16 << 10
	maxChain          = 8
	maxECDSABits      = 384
	maxRSABits        = 4096
)

// Limits of the records without data that a receiver sends after the handshake, such as key
// updates. crypto/tls accepts 16 of them for each byte of data.
const (
	maxOverhead     = 128 << 10 // more than crypto/tls reads ahead
	overheadPerByte = 4
)

var (
	errOverhead  = errors.New("egress: receiver sent a TLS handshake that is too long, or too many records without data")
	errLongChain = errors.New("egress: receiver sent too many certificates")
)

// secure completes a verified TLS handshake over conn. If that fails, it closes conn.
func (p *Policy) secure(ctx context.Context, conn net.Conn, host string) (*secureConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	metered := &meteredConn{Conn: conn, left: maxHandshakeBytes}
	var verified [][]*x509.Certificate
	secured := tls.Client(metered, p.tlsConfig(host, &verified))
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	metered.left = maxOverhead
	state := secured.ConnectionState()
	state.VerifiedChains = verified
	return &secureConn{Conn: secured, metered: metered, state: state}, nil
}

// tlsConfig returns the configuration of every handshake. Probes use it too, so a probe fails
// if a notification would. We offer only HTTP/1.1 (ALPN, RFC 7301): a notification is one
// small request, and with HTTP/2 a receiver could flood us with frames. Verified chains go to
// verified.
func (p *Policy) tlsConfig(host string, verified *[][]*x509.Certificate) *tls.Config {
	return &tls.Config{
		ServerName: host,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},

		// VerifyConnection verifies. crypto/tls would accept chains of any length, with any
		// keys.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			*verified, err = p.verify(state.PeerCertificates, host)
			return err
		},
	}
}

// verify verifies a chain as crypto/tls does, but first makes sure that it's cheap.
func (p *Policy) verify(sent []*x509.Certificate, host string) ([][]*x509.Certificate, error) {
	if len(sent) > maxChain {
		return nil, errLongChain
	}
	verified, err := sent[0].Verify(x509.VerifyOptions{
		Roots:         p.RootCAs,
		Intermediates: intermediates(sent[1:]),
		DNSName:       host,
	})
	if err != nil {
		return nil, &tls.CertificateVerificationError{UnverifiedCertificates: sent, Err: err}
	}
	return verified, nil
}

// intermediates returns the certificates that may link the first one to a root. It leaves out
// large keys: if such a certificate is a trusted root, we have it anyway.
func intermediates(sent []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	var added []*x509.Certificate
	for _, cert := range sent {
		isAlias := func(other *x509.Certificate) bool { return areAliases(cert, other) }
		if !hasLargeKey(cert) && !slices.ContainsFunc(added, isAlias) {
			added = append(added, cert)
			pool.AddCert(cert)
		}
	}
	return pool
}

func hasLargeKey(cert *x509.Certificate) bool {
	switch key := cert.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return key.Params().BitSize > maxECDSABits
	case *rsa.PublicKey:
		return key.N.BitLen() > maxRSABits
	}
	return false
}

// areAliases reports whether two certificates have the same subject and key, but different
// alternative names. crypto/x509 treats them as two authorities. If each could have signed
// all the others, it would check their signatures in every order.
func areAliases(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubject, b.RawSubject) &&
		bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo) &&
		!bytes.Equal(alternativeNames(a), alternativeNames(b))
}

var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

func alternativeNames(cert *x509.Certificate) []byte {
	for _, extension := range cert.Extensions {
		if extension.Id.Equal(subjectAltName) {
			return extension.Value
		}
	}
	return nil
}

// meteredConn is a connection that fails once you've read more than left bytes from it.
type meteredConn struct {
	net.Conn
	left int
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.left -= n
	if c.left < 0 {
		return 0, errOverhead
	}
	return n, err
}

// secureConn is a TLS connection. Each byte of data that arrives lets it read a few more
// bytes.
type secureConn struct {
	*tls.Conn
	metered *meteredConn
	state   tls.ConnectionState
}

func (c *secureConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.metered.left = min(c.metered.left+n*overheadPerByte, maxOverhead)
	return n, err
}

// Close closes the connection without a close_notify alert. If the receiver doesn't read, the
// alert would wait for ever behind the reply to a key update. Meanwhile, net/http can hold a
// lock that every request needs.
func (c *secureConn) Close() error { return c.metered.Close() }
