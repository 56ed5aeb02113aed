package webhookcfg_test

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Frame types and flags of RFC 9113 §6.
const (
	frameData      = 0x0
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4
	frameGoAway    = 0x7

	flagEndStream  = 0x1
	flagEndHeaders = 0x4
)

// frame is a frame of stream 1, or of the connection if it is of type SETTINGS.
type frame struct {
	kind, flags byte
	payload     string
}

func (f frame) write(t testing.TB, w io.Writer) {
	t.Helper()
	head := make([]byte, 9)
	binary.BigEndian.PutUint32(head, uint32(len(f.payload))<<8)
	head[3], head[4] = f.kind, f.flags
	if f.kind != frameSettings {
		head[8] = 1
	}
	if _, err := io.WriteString(w, string(head)+f.payload); err != nil {
		t.Fatal(err)
	}
}

func readFrame(r io.Reader) (frame, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return frame{}, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
	_, err := io.ReadFull(r, payload)
	return frame{head[3], head[4], string(payload)}, err
}

// headers is a HEADERS frame. Its fields, given as pairs, are literals that are neither
// indexed nor compressed (RFC 7541 §6.2.2).
func headers(flags byte, fields ...string) frame {
	var block []byte
	for i, text := range fields {
		if i%2 == 0 {
			block = append(block, 0)
		}
		if len(text) < 0x7F {
			block = append(block, byte(len(text)))
		} else {
			block = binary.AppendUvarint(append(block, 0x7F), uint64(len(text)-0x7F))
		}
		block = append(block, text...)
	}
	return frame{frameHeaders, flags | flagEndHeaders, string(block)}
}

// requestHeaders is the HEADERS frame of a request of acme, with further fields.
func requestHeaders(flags byte, method, path string, fields ...string) frame {
	return headers(flags, append([]string{
		":method", method, ":scheme", "http", ":authority", "test", ":path", path,
		"authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(acme)), "content-type", "application/json",
	}, fields...)...)
}

// serveHTTP2 serves a handler over HTTP/1.1 and, to clients that know it, HTTP/2.
func serveHTTP2(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// rawHTTP2 opens a connection, sends frames one by one, and returns the body of the
// response, or "reset" if the server reset the stream. Between the first frame and the
// second it waits for arrived, unless that is nil.
func rawHTTP2(t testing.TB, address string, arrived <-chan struct{}, frames ...frame) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	frame{kind: frameSettings}.write(t, conn)
	for i, f := range frames {
		if i == 1 && arrived != nil {
			<-arrived
		}
		f.write(t, conn)
	}
	var body strings.Builder
	for {
		f, err := readFrame(conn)
		if err != nil {
			t.Fatal(err)
		}
		switch f.kind {
		case frameData:
			body.WriteString(f.payload)
		case frameRSTStream:
			return "reset"
		case frameGoAway:
			return "closed"
		}
		if f.kind <= frameHeaders && f.flags&flagEndStream != 0 {
			return body.String()
		}
	}
}

// TestUnsetAllTakesNoBodyOverHTTP2: a body is refused, whatever length it declares, and even
// if it arrives after the handler was called. So is a length without a body.
func TestUnsetAllTakesNoBodyOverHTTP2(t *testing.T) {
	st := newRecorder()
	signedIn := make(chan struct{}, 1)
	h := newHandler(t, st, options())
	address := serveHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signedIn <- struct{}{}
		h.ServeHTTP(w, r)
	}))
	data := func(flags byte, payload string) frame { return frame{frameData, flags, payload} }
	const all, entity = configure, configure + "/e1"
	tests := []struct {
		name   string
		frames []frame
		want   string // a change, or "" if there must be none
	}{
		{"no body", []frame{requestHeaders(flagEndStream, "DELETE", all)}, "acme unset all"},
		{"length 0, no body", []frame{requestHeaders(flagEndStream, "DELETE", all, "content-length", "0")}, "acme unset all"},
		{"length 0, empty DATA", []frame{requestHeaders(0, "DELETE", all, "content-length", "0"), data(flagEndStream, "")}, "acme unset all"},
		{"empty DATA", []frame{requestHeaders(0, "DELETE", all), data(0, ""), data(flagEndStream, "")}, "acme unset all"},
		{"trailers", []frame{requestHeaders(0, "DELETE", all), headers(flagEndStream, "x-trailer", "1")}, "acme unset all"},
		{"one entity, with a body", []frame{requestHeaders(0, "DELETE", entity), data(flagEndStream, "{}")}, "acme unset entity e1"},

		{"body", []frame{requestHeaders(0, "DELETE", all), data(flagEndStream, `{"endpoint_id":"e1"}`)}, ""},
		{"body after empty DATA", []frame{requestHeaders(0, "DELETE", all), data(0, ""), data(flagEndStream, "1")}, ""},
		{"body and trailers", []frame{requestHeaders(0, "DELETE", all), data(0, "1"), headers(flagEndStream, "x-trailer", "1")}, ""},
		{"length without a body", []frame{requestHeaders(flagEndStream, "DELETE", all, "content-length", "20")}, ""},
		{"length, empty DATA", []frame{requestHeaders(0, "DELETE", all, "content-length", "20"), data(flagEndStream, "")}, ""},
	}
	for _, length := range []string{"0", "20", "x", "", "-1", "+20", "0x14", "20, 20", "20.0", "99999999999999999999"} {
		tests = append(tests, struct {
			name   string
			frames []frame
			want   string
		}{"body of length " + length, []frame{requestHeaders(0, "DELETE", all, "content-length", length), data(flagEndStream, `{"endpoint_id":"e1"}`)}, ""})
	}
	for _, tt := range tests {
		body := rawHTTP2(t, address, signedIn, tt.frames...)
		if len(tt.frames) == 1 {
			select {
			case <-signedIn:
			default: // since Go 1.27, net/http refuses a length without a body itself
			}
		}
		changes := strings.Join(st.take(), ", ")
		if changes != tt.want || (body == successBody) != (tt.want != "") {
			t.Errorf("%s: the store saw %q, the response is %s", tt.name, changes, body)
		}
		if tt.want == "" && body != "reset" && errorCode(body) != "invalid_request" {
			t.Errorf("%s: got %s", tt.name, body)
		}
	}
}

// TestUnsetAllWaitsInTimeOverHTTP2: a body that never comes, or never ends, holds up
// nothing for longer than the timeout.
func TestUnsetAllWaitsInTimeOverHTTP2(t *testing.T) {
	st := newRecorder()
	o := options()
	o.Timeout = 50 * time.Millisecond
	address := serveHTTP2(t, newHandler(t, st, o))
	for _, fields := range [][]string{nil, {"content-length", "0"}, {"content-length", "20"}, {"content-length", "x"}, {"expect", "100-continue"}} {
		body := rawHTTP2(t, address, nil, requestHeaders(0, "DELETE", configure, fields...))
		if changes := st.take(); changes != nil || errorCode(body) != "invalid_request" {
			t.Errorf("%q: the store saw %q, the response is %s", fields, changes, body)
		}
	}
}

// TestPathOverHTTP2: all entities are reached only by a path in origin form, unlike over
// HTTP/1, where proxies send the absolute form. Since Go 1.27, net/http refuses such a path
// itself.
func TestPathOverHTTP2(t *testing.T) {
	st := newRecorder()
	address := serveHTTP2(t, newHandler(t, st, options()))
	for path, want := range map[string]string{configure: "acme unset all", "http://test" + configure: "", "http:" + configure: ""} {
		body := rawHTTP2(t, address, nil, requestHeaders(flagEndStream, "DELETE", path))
		if changes := strings.Join(st.take(), ", "); changes != want || want == "" && body != "reset" && errorCode(body) != "invalid_request" {
			t.Errorf(":path %s: the store saw %q, the response is %s", path, changes, body)
		}
	}
}
