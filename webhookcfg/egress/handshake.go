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

// Limits of the certificates in a handshake, which cost a receiver nothing and this side a
// signature check each, or more. A verification that is under way can't be interrupted.
const (
	maxHandshakeBytes = 16 << 10
	maxChain          = 8
	maxECDSABits      = 384
	maxRSABits        = 4096
)

// Limits of the records without data that a receiver sends after the handshake. crypto/tls
// accepts 16 of them, such as key updates, for each byte of data.
const (
	maxOverhead     = 128 << 10 // more than crypto/tls reads ahead
	overheadPerByte = 4
)

var (
	errOverhead  = errors.New("egress: receiver sent more than a handshake or its data takes")
	errLongChain = errors.New("egress: receiver sent too many certificates")
)

// secure completes a verified TLS handshake over conn, which it closes on failure.
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

// tlsConfig returns the configuration of every handshake, so that a probe fails if that of
// a notification would. HTTP/1.1 is all that is offered (ALPN, RFC 7301): a notification is
// one small request, and with HTTP/2 its receiver could flood the sender with frames.
// The chains that it verifies go to verified.
func (p *Policy) tlsConfig(host string, verified *[][]*x509.Certificate) *tls.Config {
	return &tls.Config{
		ServerName: host,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},

		// VerifyConnection does. crypto/tls would verify chains of any length and any keys.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			*verified, err = p.verify(state.PeerCertificates, host)
			return err
		},
	}
}

// verify verifies a chain as crypto/tls does, once that is known to be cheap.
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

// intermediates returns the certificates that may be links between the first one and a
// root. It leaves out those with a large key. If such a certificate is a root, it's known.
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

// areAliases reports whether two certificates have the same subject and key, but not the
// same alternative names. crypto/x509 takes them for two authorities: if each could have
// signed all the others, it would check their signatures in every order.
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

// meteredConn is a connection that fails once more than a number of bytes were read from it.
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

// secureConn is a TLS connection whose data pay for the bytes that are read for them.
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

// Close closes the connection without a close_notify alert. The alert would wait for ever
// behind the reply to a key update if the receiver doesn't read, and net/http may hold a
// lock meanwhile that every request needs.
func (c *secureConn) Close() error { return c.metered.Close() }
