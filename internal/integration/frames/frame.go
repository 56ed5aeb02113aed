package frames

import (
	"bytes"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/internal/pathtest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frame is a frame of HTTP/2. It can be invalid.
type frame struct {
	kind    http2.FrameType
	flags   http2.Flags
	stream  uint32
	payload []byte
}

// The flags of RFC 9113 §6.2. DATA has END_STREAM and PADDED too, and CONTINUATION has
// END_HEADERS.
const (
	endStream  = http2.FlagHeadersEndStream
	endHeaders = http2.FlagHeadersEndHeaders
	padded     = http2.FlagHeadersPadded
	priority   = http2.FlagHeadersPriority
)

// field is a header field or a pseudo-header field.
type field struct{ name, value string }

// authorization stands for the credentials of an attempt's client. It has the same length.
var authorization = pathtest.Authorization(clientID(0))

// clientID returns the client of an attempt. Each attempt has its own, so we can attribute an
// effect even if it comes late.
func clientID(attempt int) string { return fmt.Sprintf("attempt-%04d", attempt) }

// of returns the frame with the credentials of a client.
func (f frame) of(clientID string) frame {
	f.payload = bytes.ReplaceAll(f.payload, []byte(authorization), []byte(pathtest.Authorization(clientID)))
	return f
}

// encode returns the header block of fields, even of invalid ones.
func encode(fields []field) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		if f.value == authorization { // neither indexed nor compressed (RFC 7541 §6.2.2)
			fmt.Fprintf(&block, "\x00%c%s%c%s", len(f.name), f.name, len(f.value), f.value)
			continue
		}
		_ = encoder.WriteField(hpack.HeaderField{Name: f.name, Value: f.value}) // writing to a buffer can't fail
	}
	return block.Bytes()
}

// headers returns a HEADERS frame of stream 1 with a whole header block.
func headers(flags http2.Flags, fields ...field) frame {
	return frame{http2.FrameHeaders, flags | endHeaders, 1, encode(fields)}
}

// data returns a DATA frame of stream 1.
func data(flags http2.Flags, payload string) frame {
	return frame{http2.FrameData, flags, 1, []byte(payload)}
}

// pad adds padding to a frame with flags.
func pad(f frame, length int) frame {
	f.flags |= padded
	f.payload = slices.Concat([]byte{byte(length)}, f.payload, make([]byte, length))
	return f
}

// split splits a HEADERS frame into one and CONTINUATION frames. The offsets say where each
// piece of the header block ends.
func split(f frame, offsets ...int) []frame {
	var all []frame
	block := f.payload
	f.flags &^= endHeaders
	for at := 0; ; f.kind, f.flags = http2.FrameContinuation, 0 {
		if len(offsets) == 0 {
			f.payload, f.flags = block[at:], f.flags|endHeaders
			return append(all, f)
		}
		f.payload = block[at:offsets[0]]
		all = append(all, f)
		at, offsets = offsets[0], offsets[1:]
	}
}

// on returns frames on another stream.
func on(stream uint32, all ...frame) []frame {
	all = slices.Clone(all)
	for i := range all {
		all[i].stream = stream
	}
	return all
}
