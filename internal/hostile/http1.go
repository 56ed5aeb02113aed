package hostile

import (
	"bytes"
	"strings"
)

// overTCP are receivers that speak neither HTTP nor TLS.
var overTCP = []Receiver{
	{Name: "silence", serve: func(p *peer) { p.hostile() }},
	{Name: "close", serve: func(p *peer) {
		p.hostile()
		_ = p.Close()
	}},
	{Name: "noise", serve: func(p *peer) {
		p.hostile()
		p.flood("\x00noise\x00")
	}},
	{Name: "dripping noise", serve: func(p *peer) {
		p.hostile()
		p.drip("\x16")
	}},
	{Name: "SSH", serve: func(p *peer) {
		p.hostile()
		p.send("SSH-2.0-OpenSSH_9.6\r\n")
	}},
	{Name: "nothing read", BodySize: 16 << 20, serve: func(p *peer) {
		p.hostile()
		p.readNothing("x")
	}},
}

const ok = "HTTP/1.1 200 OK\r\n"

// overHTTP1 are receivers that read a request and respond with HTTP/1.1.
var overHTTP1 = []Receiver{
	{Name: "silence", serve: afterRequest(func(*peer, []byte) {})},
	{Name: "close", serve: afterRequest(func(p *peer, _ []byte) { _ = p.Close() })},
	{Name: "reset", serve: afterRequest(func(p *peer, _ []byte) { p.reset() })},
	{Name: "echo", serve: afterRequest(func(p *peer, head []byte) { p.send(string(head)) })},
	{Name: "echo in a field", Responds: true, serve: afterRequest(func(p *peer, head []byte) {
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		p.send(ok + string(line) + "\x1b[2J\r\n\r\n")
	})},
	{Name: "frames of HTTP/2", serve: afterRequest(func(p *peer, _ []byte) {
		p.send("\x00\x00\x00\x04\x00\x00\x00\x00\x00")          // SETTINGS
		p.flood("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678") // PING
	})},
	{Name: "switched protocols", serve: responding("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")},
	{Name: "switched protocols without upgrade", serve: responding("HTTP/1.1 101 Switching Protocols\r\n\r\n")},
	{Name: "dripping status", serve: afterRequest(func(p *peer, _ []byte) {
		p.send("HTTP/1.1 200 ")
		p.drip("O")
	})},
	{Name: "dripping header", serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok)
		p.drip("X-Drip: 1\r\n")
	})},
	{Name: "endless header", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok)
		p.flood("X-Flood: 1\r\n")
	})},
	{Name: "endless field", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "X-Flood: ")
		p.flood("x")
	})},
	{Name: "dripping early hints", serve: afterRequest(func(p *peer, _ []byte) { p.drip("HTTP/1.1 103 Early Hints\r\n\r\n") })},
	{Name: "endless early hints", serve: afterRequest(func(p *peer, _ []byte) { p.flood("HTTP/1.1 103 Early Hints\r\n\r\n") })},
	{Name: "endless processing", serve: afterRequest(func(p *peer, _ []byte) { p.flood("HTTP/1.1 102 Processing\r\n\r\n") })},
	{Name: "header and silence", Responds: true, serve: responding(ok + "\r\n")},
	{Name: "dripping body", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "\r\n")
		p.drip("x")
	})},
	{Name: "endless body", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "\r\n")
		p.flood("x")
	})},
	{Name: "terabyte", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Content-Length: 1099511627776\r\n\r\n")
		p.flood("x")
	})},
	{Name: "dripping chunk extension", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Transfer-Encoding: chunked\r\n\r\n1;")
		p.drip("x")
	})},
	{Name: "endless chunk extension", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Transfer-Encoding: chunked\r\n\r\n1;")
		p.flood("x")
	})},
	{Name: "endless trailer", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n")
		p.flood("X-Flood: 1\r\n")
	})},
	{Name: "short body", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Content-Length: 100\r\n\r\nshort")
		p.reset()
	})},
	{Name: "echo in a trailer", Responds: true, serve: afterRequest(func(p *peer, head []byte) {
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		p.send(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + string(line) + "\r\n\r\n")
	})},
	{Name: "broken Location", Responds: true, serve: responding("HTTP/1.1 302 Found\r\nLocation: http://[secret%zz\r\nContent-Length: 0\r\n\r\n")},
	{Name: "control bytes in the status", Responds: true, serve: responding("HTTP/1.1 500 \x1b]0;secret\x07\x1b[2J\r\nContent-Length: 0\r\n\r\n")},
	{Name: "more than one response", Responds: true, serve: responding(ok + "Content-Length: 0\r\n\r\n" + strings.Repeat("\x00secret", 10_000))},
	{Name: "noise when idle", Responds: true, serve: afterRequest(func(p *peer, _ []byte) {
		p.send(ok + "Content-Length: 0\r\n\r\n")
		p.drip(strings.Repeat("\x00", 4096))
	})},
}

// afterRequest returns a receiver that becomes hostile once it has read the header of a
// request.
func afterRequest(serve func(p *peer, head []byte)) func(*peer) {
	return func(p *peer) {
		var head []byte
		for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			line, err := p.reader.ReadSlice('\n')
			if err != nil {
				return
			}
			head = append(head, line...)
		}
		p.hostile()
		serve(p, head)
	}
}

// responding returns a receiver that sends text after the header of a request, and then
// nothing.
func responding(text string) func(*peer) {
	return afterRequest(func(p *peer, _ []byte) { p.send(text) })
}
