package hostile

import (
	"encoding/binary"
	"io"
	"strings"
)

// Types, flags and settings of frames (RFC 9113, sections 6 and 7).
const (
	frameData, frameHeaders, frameReset, frameSettings = 0x0, 0x1, 0x3, 0x4
	framePing, frameGoAway, frameWindow                = 0x6, 0x7, 0x8
	frameContinuation                                  = 0x9

	flagAck, flagEndStream, flagEndHeaders = 0x1, 0x1, 0x4

	maxConcurrentStreams, initialWindowSize = 0x3, 0x4
)

// Header blocks (RFC 7541): indexed fields, and literal ones without indexing.
const (
	status200 = "\x88"
	status103 = "\x08\x03103"
	status101 = "\x08\x03101"
	status302 = "\x08\x03302"
	field     = "\x00\x01x\x01y"
)

// overHTTP2 are receivers that have negotiated HTTP/2.
var overHTTP2 = []Receiver{
	{Name: "silence", serve: func(p *peer) { p.hostile() }},
	{Name: "close", serve: func(p *peer) {
		p.hostile()
		_ = p.Close()
	}},
	{Name: "HTTP/1.1", serve: func(p *peer) {
		p.hostile()
		p.send(ok + "Content-Length: 0\r\n\r\n")
	}},
	{Name: "gone dark", serve: onStream(func(*peer, uint32) {})},
	{Name: "reset", serve: onStream(func(p *peer, _ uint32) { p.reset() })},
	{Name: "reset stream", serve: onStream(func(p *peer, stream uint32) { p.send(frame(frameReset, 0, stream, number(2))) })},
	{Name: "refused stream", serve: onStream(func(p *peer, stream uint32) { p.send(frame(frameReset, 0, stream, number(7))) })},
	{Name: "going away", serve: onStream(func(p *peer, _ uint32) { p.send(frame(frameGoAway, 0, 0, number(0)+number(0))) })},
	{Name: "going away with text", serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameGoAway, 0, 0, number(stream)+number(0)+"secret"))
		_ = p.Close()
	})},
	{Name: "no streams", serve: func(p *peer) {
		p.hostile()
		p.send(frame(frameSettings, 0, 0, setting(maxConcurrentStreams, 0)))
	}},
	{Name: "no window", BodySize: 1, serve: func(p *peer) {
		p.hostile()
		p.send(frame(frameSettings, 0, 0, setting(initialWindowSize, 0)))
	}},
	{Name: "nothing read", BodySize: 16 << 20, serve: func(p *peer) {
		p.hostile()
		p.send(frame(frameSettings, 0, 0, setting(initialWindowSize, 1<<30)) + frame(frameWindow, 0, 0, number(1<<30)))
		p.drip(frame(frameWindow, 0, 0, number(1))) // so that the connection appears to be alive
	}},
	{Name: "switched protocols", serve: onStream(func(p *peer, stream uint32) { p.send(frame(frameHeaders, flagEndHeaders, stream, status101)) })},
	{Name: "dripping early hints", serve: onStream(func(p *peer, stream uint32) { p.drip(frame(frameHeaders, flagEndHeaders, stream, status103)) })},
	{Name: "endless early hints", serve: onStream(func(p *peer, stream uint32) { p.flood(frame(frameHeaders, flagEndHeaders, stream, status103)) })},
	{Name: "dripping header", serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, 0, stream, status200))
		p.drip(frame(frameContinuation, 0, stream, field))
	})},
	{Name: "endless header", serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, 0, stream, status200))
		p.flood(frame(frameContinuation, 0, stream, strings.Repeat(field, 1000)))
	})},
	{Name: "large header", serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, 0, stream, status200))
		for range 20 {
			p.send(frame(frameContinuation, 0, stream, strings.Repeat(field, 1000)))
		}
		p.send(frame(frameContinuation, flagEndHeaders, stream, field))
	})},
	{Name: "endless settings", serve: onStream(func(p *peer, _ uint32) { p.flood(frame(frameSettings, 0, 0, "")) })},
	{Name: "endless pings", serve: onStream(func(p *peer, _ uint32) { p.flood(frame(framePing, 0, 0, "12345678")) })},
	{Name: "header and silence", Responds: true, serve: onStream(func(p *peer, stream uint32) { p.send(frame(frameHeaders, flagEndHeaders, stream, status200)) })},
	{Name: "dripping body", Responds: true, serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, flagEndHeaders, stream, status200))
		p.drip(frame(frameData, 0, stream, "x"))
	})},
	{Name: "endless body", Responds: true, serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, flagEndHeaders, stream, status200))
		p.flood(frame(frameData, 0, stream, strings.Repeat("x", 1000)))
	})},
	{Name: "endless empty body", Responds: true, serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, flagEndHeaders, stream, status200))
		p.flood(frame(frameData, 0, stream, ""))
	})},
	{Name: "broken Location", Responds: true, serve: onStream(func(p *peer, stream uint32) {
		p.send(frame(frameHeaders, flagEndHeaders|flagEndStream, stream, status302+"\x0f\x1f\x0fhttp://[secret%"))
	})},
}

// onStream returns a receiver that becomes hostile with each stream that the sender opens.
// It acknowledges nothing.
func onStream(serve func(p *peer, stream uint32)) func(*peer) {
	return func(p *peer) {
		p.send(frame(frameSettings, 0, 0, ""))
		preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		if _, err := io.ReadFull(p.reader, preface); err != nil {
			return
		}
		for {
			var head [9]byte
			if _, err := io.ReadFull(p.reader, head[:]); err != nil {
				return
			}
			length := int64(binary.BigEndian.Uint32(head[:4]) >> 8)
			if _, err := io.CopyN(io.Discard, p.reader, length); err != nil {
				return
			}
			if head[3] == frameHeaders {
				p.hostile()
				serve(p, binary.BigEndian.Uint32(head[5:]))
			}
		}
	}
}

// frame returns a frame (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	return string(head) + payload
}

// number returns n as the four bytes of a stream identifier, an error code or a window.
func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// setting returns one parameter of a SETTINGS frame.
func setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint16(nil, id)) + number(value)
}
