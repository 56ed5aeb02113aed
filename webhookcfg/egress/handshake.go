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
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
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
	config := p.tlsConfig(host, &verified)
	asksForCertificate := false
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asksForCertificate = true
		return new(tls.Certificate), nil // none
	}
	secured := tls.Client(metered, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if asksForCertificate && isAlert(err) {
			err = &clientCertificateError{err}
		}
		return nil, err
	}
	metered.left = maxOverhead
	state := secured.ConnectionState()
	state.VerifiedChains = verified
	return &secureConn{Conn: secured, metered: metered, state: state, asksForCertificate: asksForCertificate}, nil
}

// clientCertificateError means that TLS failed, and that the receiver seems to require a client
// certificate. We have none.
type clientCertificateError struct{ cause error }

func (e *clientCertificateError) Error() string {
	return "egress: no client certificate for the receiver: " + e.cause.Error()
}

func (e *clientCertificateError) Unwrap() error { return e.cause }

// tlsConfig returns the configuration of every handshake. Probes use it too, so a probe fails
// if a notification would. We offer only HTTP/1.1 (ALPN, RFC 7301): a notification is one
// small request, and with HTTP/2 a receiver could flood us with frames. Verified chains go to
// verified.
func (p *Policy) tlsConfig(host string, verified *[][]*x509.Certificate) *tls.Config {
	return &tls.Config{
		ServerName: strings.ToLower(host), // some servers compare it with case
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
	left   int
	failed atomic.Bool // the connection itself, for example because the peer closed it
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.failed.Store(true)
	}
	c.left -= n
	if c.left < 0 {
		return 0, errOverhead
	}
	return n, err
}

func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// secureConn is a TLS connection. Each byte of data that arrives lets it read a few more
// bytes.
type secureConn struct {
	*tls.Conn
	metered            *meteredConn
	state              tls.ConnectionState
	asksForCertificate bool
	failure            atomic.Pointer[error] // of TLS, after the handshake
}

func (c *secureConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.metered.left = min(c.metered.left+n*overheadPerByte, maxOverhead)
	return n, c.note(err)
}

func (c *secureConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.note(err)
}

// note remembers an error that is neither the end of the data nor of the connection below, so
// it's one of TLS: an alert, or something that we don't accept, such as renegotiation. We don't
// renegotiate: HTTP/1.1 servers do so to ask for a client certificate, and we have none.
func (c *secureConn) note(err error) error {
	if err == nil || errors.Is(err, io.EOF) || c.metered.failed.Load() {
		return err
	}
	if c.asksForCertificate && isAlert(err) || isRenegotiation(err) {
		err = &clientCertificateError{err}
	}
	c.failure.CompareAndSwap(nil, &err)
	return err
}

// isAlert reports whether the receiver has sent an alert. crypto/tls doesn't export their type.
func isAlert(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error"
}

// isRenegotiation reports whether we have refused to renegotiate.
func isRenegotiation(err error) bool {
	const noRenegotiation tls.AlertError = 100
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "local error" && alert.Err.Error() == noRenegotiation.Error()
}

// alertTimeout is how long a probe waits for an alert.
const alertTimeout = time.Second

// awaitAlert returns an error if the receiver asks for a client certificate and then says that
// it requires one. In TLS 1.3, our side of the handshake is complete before the receiver has
// looked at it. A receiver that doesn't insist says nothing, so we can only wait.
func (c *secureConn) awaitAlert() error {
	if !c.asksForCertificate || c.state.Version < tls.VersionTLS13 {
		return nil
	}
	_ = c.SetReadDeadline(time.Now().Add(alertTimeout))
	_, err := c.Read(make([]byte, 1))
	if netErr, ok := errors.AsType[net.Error](err); err == nil || ok && netErr.Timeout() {
		return nil
	}
	return &clientCertificateError{err}
}

// Close closes the connection without a close_notify alert. If the receiver doesn't read, the
// alert would wait for ever behind the reply to a key update. Meanwhile, net/http can hold a
// lock that every request needs.
func (c *secureConn) Close() error { return c.metered.Close() }
