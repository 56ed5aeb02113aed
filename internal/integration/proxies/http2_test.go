package proxies_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/pathtest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frame is a frame of a DELETE: its first header fields, its trailers, or a part of its body.
type frame struct {
	fields  []hpack.HeaderField // of HEADERS
	payload string              // of DATA
}

// body is a DELETE with or without a body, as package mounttest can't send it.
type body struct {
	name, path string
	frames     []frame // after the first one
	length     string  // Content-Length; "-" for none
	effect     string  // of a well-formed request; "" means that it must not reach all entities
}

// bodies returns requests that clients and proxies send, and some with a false length.
func bodies() (rows []body) {
	const all, entity = base + "/api/v1/configure/configure-webhook", base + "/api/v1/configure/configure-webhook/e1"
	const named = `{"endpoint_id":"e1"}`
	data := func(payload string) frame { return frame{payload: payload} }
	trailers := frame{fields: []hpack.HeaderField{{Name: "x-trailer", Value: "1"}}}
	for _, path := range []string{all, entity} {
		effect := map[string]string{all: "unset all", entity: "unset entity e1"}[path]
		rows = append(rows,
			body{"no body", path, nil, "-", effect},
			body{"length 0", path, nil, "0", effect},
			body{"empty DATA", path, []frame{data(""), data("")}, "-", effect},
			body{"trailers", path, []frame{trailers}, "-", effect})
	}
	rows = append(rows,
		body{"a body for one entity", entity, []frame{data(named)}, "-", "unset entity e1"},
		body{"DATA", all, []frame{data(named)}, "-", ""},
		body{"DATA after empty DATA", all, []frame{data(""), data(named)}, "-", ""},
		body{"DATA and trailers", all, []frame{data(named), trailers}, "-", ""},
		body{"DATA of its length", all, []frame{data(named)}, fmt.Sprint(len(named)), ""})
	for _, length := range []string{"0", "1", "19", "21", "x", "", "20, 20"} {
		rows = append(rows, body{"DATA, length " + length, all, []frame{data(named)}, length, ""})
	}
	return append(rows,
		body{"no DATA, length 20", all, nil, "20", ""},
		body{"empty DATA, length 20", all, []frame{data("")}, "20", ""},
		body{"no body, after all others", all, nil, "-", "unset all"})
}

// expectBodies sends bodies over HTTP/2 to a mount. Those that aren't well formed or mean one
// entity must not reach all of them, and nothing may be redirected. refuses are the names of
// well-formed ones that the proxy may refuse. It must not refuse them for other applications.
func (r running) expectBodies(t *testing.T, refuses []string) {
	t.Helper()
	_, address, _ := strings.Cut(r.url, "://")
	for i, b := range bodies() {
		client := fmt.Sprintf("client-%d", i)
		status := b.send(t, address, r.tls, client)
		effect := r.Changes(client)
		switch {
		case strings.HasPrefix(status, "3"):
			t.Errorf("%s, %s: status %s", b.path, b.name, status)
		case b.effect != "" && effect != b.effect && (effect != "" || !slices.Contains(refuses, b.name)):
			t.Errorf("%s, %s: status %s, the effect is %q, want %q", b.path, b.name, status, effect, b.effect)
		case b.effect == "" && effect != "":
			t.Errorf("%s, %s: status %s, the effect is %q", b.path, b.name, status, effect)
		}
	}
	other := body{path: "/app/api/v1/orders/1", length: "0"}
	if status := other.send(t, address, r.tls, "client"); status == "400" || status == "403" || status == "" {
		t.Errorf("a DELETE of another application with length 0: status %q", status)
	}
}

// send sends the request over a connection of its own. The status is "" if there was no
// response.
func (b body) send(t *testing.T, address string, config *tls.Config, client string) (status string) {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "DELETE"},
		{Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: address},
		{Name: ":path", Value: b.path},
		{Name: "authorization", Value: pathtest.Authorization(client)},
	}
	if b.length != "-" {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: b.length})
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	// The server can close the connection before it has read everything.
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings()
	frames := append([]frame{{fields: fields}}, b.frames...)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i, f := range frames {
		isLast := i == len(frames)-1
		if f.fields == nil {
			_ = framer.WriteData(1, isLast, []byte(f.payload))
			continue
		}
		block.Reset()
		for _, field := range f.fields {
			_ = encoder.WriteField(field) // writing to a buffer can't fail
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: isLast, EndHeaders: true})
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return status // the framer may also refuse a frame
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.RSTStreamFrame:
			return status
		case *http2.MetaHeadersFrame:
			status = f.PseudoValue("status")
			if f.StreamEnded() {
				return status
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				return status
			}
		}
	}
}
