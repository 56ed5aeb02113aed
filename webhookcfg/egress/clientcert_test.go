package egress_test

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestClientCertificates: what breaks TLS after the handshake has the same reason as what breaks
// the handshake, in probes and calls. If the receiver seems to require a client certificate, the
// error says so. Afterwards, nothing is open.
func TestClientCertificates(t *testing.T) {
	serving := func(conn net.Conn, config *tls.Config) {
		secured := tls.Server(conn, config)
		if secured.Handshake() == nil {
			answering("HTTP/1.1 204 No Content\r\n\r\n")(secured)
		}
		_, _ = io.Copy(io.Discard, conn)
	}
	const none, reason, hint = "", "tls", "client certificate"
	for _, test := range []struct {
		name           string
		change         func(*tls.Config)
		serve          func(net.Conn, *tls.Config)
		connects       string // the error of a probe that only connects
		calls          string
		connectingTime time.Duration
	}{
		{
			"required, TLS 1.3",
			func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, serving, hint, hint, 0,
		},
		{
			"required, TLS 1.2",
			func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 }, serving, hint, hint, 0,
		},
		{
			"required, closes without an alert",
			func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert },
			func(conn net.Conn, config *tls.Config) { _ = tls.Server(conn, config).Handshake() },
			hint, string(egress.ReasonResponse), 0,
		},
		{
			"optional, TLS 1.3",
			func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }, serving, none, none, time.Second,
		},
		{
			"optional, TLS 1.2",
			func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequestClientCert, tls.VersionTLS12 }, serving, none, none, 0,
		},
		{
			"renegotiation, TLS 1.2",
			func(c *tls.Config) {
				c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
			},
			renegotiating, none, hint, 0,
		},
		{
			"noise after the handshake",
			func(*tls.Config) {},
			func(conn net.Conn, config *tls.Config) {
				_ = tls.Server(conn, config).Handshake()
				_, _ = io.WriteString(conn, "\x17\x03\x03\x00\x05noise")
				_, _ = io.Copy(io.Discard, conn)
			},
			none, reason, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				config := ca.valid(t, receiverName)
				test.change(config)
				policy := inMemory(t, ca, func(conn net.Conn) { test.serve(conn, config) })
				url := egress.NewURL("https://" + receiverName + ":443/secret")
				check := func(name string, err error, want string) {
					t.Helper()
					switch want {
					case none:
						if err != nil {
							t.Errorf("%s: %v", name, err)
						}
					case string(egress.ReasonResponse):
						checkReason(t, name, err, url, egress.ReasonResponse)
					default:
						if reasonOf(err) != egress.ReasonTLS || strings.Contains(err.Error(), hint) != (want == hint) {
							t.Errorf("%s: %v, because %v", name, err, errors.Unwrap(err))
						}
					}
				}
				start := time.Now()
				check("probe that connects", newProber(t, policy, nil).Probe(t.Context(), "client", url), test.connects)
				if took := time.Since(start); took != test.connectingTime {
					t.Errorf("the probe took %v", took)
				}
				for _, caller := range callers {
					check(caller.name, caller.call(t, policy, url, time.Minute), test.calls)
				}
				client := newClient(t, policy)
				check("client", egress.RedactError(post(t.Context(), client, url.Reveal(), nil, readAll)), test.calls)
				client.CloseIdleConnections()
				synctest.Wait()
				if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
					t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
				}
			})
		})
	}
}

// TestHintIsOnlyForAlerts: a receiver that asks for a client certificate can fail for another
// reason, such as the name in its own one.
func TestHintIsOnlyForAlerts(t *testing.T) {
	ca, receiver := newAuthority(t), listen(t)
	config := ca.valid(t, "other.example")
	config.ClientAuth = tls.RequireAnyClientCert
	receiver.serve(func(conn net.Conn) { _ = tls.Server(conn, config).Handshake() })
	err := probe(t, newLoopback(ca), receiver.at("https", receiverName))
	if reasonOf(err) != egress.ReasonWrongName || strings.Contains(err.Error(), "client certificate") {
		t.Error(err)
	}
}

// renegotiating returns a receiver that reads a request and then starts another handshake, as
// servers do that want a client certificate for some of their paths. crypto/tls never does that,
// so we encrypt the message ourselves (RFC 5246 section 7.4.1.1, RFC 5288 section 3).
func renegotiating(conn net.Conn, config *tls.Config) {
	var keys strings.Builder
	config = config.Clone()
	config.KeyLogWriter = &keys
	written := &recordingConn{Conn: conn}
	secured := tls.Server(written, config)
	if secured.Handshake() != nil {
		return
	}
	if _, err := http.ReadRequest(bufio.NewReader(secured)); err != nil {
		return
	}
	fields := strings.Fields(keys.String()) // CLIENT_RANDOM, the random, and the master secret
	clientRandom, _ := hex.DecodeString(fields[1])
	master, _ := hex.DecodeString(fields[2])
	serverRandom := written.first[11:43] // after the headers of record and message, and the version
	block := keyBlock(master, "key expansion"+string(serverRandom)+string(clientRandom), 40)
	cipherBlock, _ := aes.NewCipher(block[16:32])
	aead, _ := cipher.NewGCM(cipherBlock)
	number := binary.BigEndian.AppendUint64(nil, 1) // Finished was 0
	helloRequest := []byte{0, 0, 0, 0}
	record := append([]byte{22, 3, 3, 0, byte(len(number) + len(helloRequest) + aead.Overhead())}, number...)
	record = aead.Seal(record, append(block[36:40:40], number...), helloRequest, append(number, 22, 3, 3, 0, byte(len(helloRequest))))
	_, _ = conn.Write(record)
	_, _ = io.Copy(io.Discard, conn)
}

// recordingConn keeps what was written first.
type recordingConn struct {
	net.Conn
	first []byte
}

func (c *recordingConn) Write(p []byte) (int, error) {
	if c.first == nil {
		c.first = append(c.first, p...)
	}
	return c.Conn.Write(p)
}

// keyBlock is the pseudorandom function of TLS 1.2 (RFC 5246 section 5).
func keyBlock(secret []byte, seed string, length int) []byte {
	mac := func(data string) []byte {
		h := hmac.New(sha256.New, secret)
		_, _ = io.WriteString(h, data)
		return h.Sum(nil)
	}
	var block []byte
	for a := seed; len(block) < length; {
		a = string(mac(a))
		block = append(block, mac(a+seed)...)
	}
	return block[:length]
}
