package hostile

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// overRecords are receivers that read a request and then send TLS 1.3 records without data.
// crypto/tls never does that, so we encrypt them ourselves.
var overRecords = []Receiver{
	{Name: "endless session tickets", serve: sendingRecords("", "", sessionTicket)},
	{Name: "endless key updates", serve: sendingRecords("", "", keyUpdate)},
	{Name: "key updates in a field", Responds: true, serve: sendingRecords(ok+"X-Field: ", "x", keyUpdateDemand)},
	{Name: "key updates in a body", Responds: true, serve: sendingRecords(ok+"\r\n", "x", keyUpdateDemand)},
	{Name: "session tickets after a response", Responds: true, serve: sendingRecords(noContent, "", sessionTicket)},
	{Name: "key updates after a response", Responds: true, serve: sendingRecords(noContent, "", keyUpdateDemand)},
}

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// Messages that can follow a handshake (RFC 8446, section 4.6).
const (
	sessionTicket   = "\x04\x00\x00\x0e\x00\x00\x0e\x10\x00\x00\x00\x00\x00\x00\x01x\x00\x00"
	keyUpdate       = "\x18\x00\x00\x01\x00"
	keyUpdateDemand = "\x18\x00\x00\x01\x01" // the other side has to send one, too
)

// perData is how many records without data crypto/tls accepts in a row.
const perData = 16

// sendingRecords returns a receiver that sends text after the header of a request. Then it
// sends data in endless records, and between them repeats a message of a handshake. It reads
// nothing meanwhile, so before long a sender can't reply to these messages any more.
func sendingRecords(text, data, message string) func(*peer) {
	return afterRequest(func(p *peer, _ []byte) {
		p.server.handlers.Go(func() {
			<-p.server.ending
			_ = p.raw.SetWriteDeadline(time.Now())
		})
		out := newSealer(p.keyLog.String())
		if text != "" {
			out.seal(typeData, text)
		}
		for {
			for range perData {
				out.seal(typeHandshake, message)
				if message != sessionTicket {
					out.update()
				}
			}
			if data != "" {
				out.seal(typeData, data)
			}
			if _, err := out.records.WriteTo(p.raw); err != nil {
				return
			}
		}
	})
}

// Types of records.
const (
	typeHandshake = 22
	typeData      = 23
)

// sealer encrypts records with TLS_AES_128_GCM_SHA256 (RFC 8446, section 5.2). crypto/tls
// prefers that if the processor has AES.
type sealer struct {
	records bytes.Buffer
	secret  []byte
	aead    cipher.AEAD
	iv      []byte
	number  uint64
}

// newSealer returns the sealer of a server whose handshake was logged.
func newSealer(keyLog string) *sealer {
	_, line, _ := strings.Cut(keyLog, "SERVER_TRAFFIC_SECRET_0 ")
	_, text, _ := strings.Cut(line, " ")
	text, _, _ = strings.Cut(text, "\n")
	s := &sealer{secret: must(hex.DecodeString(text))}
	s.setKey()
	return s
}

func (s *sealer) setKey() {
	s.aead = must(cipher.NewGCM(must(aes.NewCipher(s.expand("key", 16)))))
	s.iv, s.number = s.expand("iv", 12), 0
}

// update switches to the next key, which we must do after a key update.
func (s *sealer) update() {
	s.secret = s.expand("traffic upd", sha256.Size)
	s.setKey()
}

// expand is HKDF-Expand-Label (RFC 8446, section 7.1).
func (s *sealer) expand(label string, length int) []byte {
	label = "tls13 " + label
	info := string([]byte{0, byte(length), byte(len(label))}) + label + "\x00"
	return must(hkdf.Expand(sha256.New, s.secret, info, length))
}

func (s *sealer) seal(contentType byte, text string) {
	nonce := bytes.Clone(s.iv)
	binary.BigEndian.PutUint64(nonce[4:], binary.BigEndian.Uint64(nonce[4:])^s.number)
	s.number++
	inner := append([]byte(text), contentType)
	header := []byte{typeData, 3, 3, 0, byte(len(inner) + s.aead.Overhead())}
	s.records.Write(s.aead.Seal(header, nonce, inner, header))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
