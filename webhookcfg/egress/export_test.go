package egress

import "time"

// ShortenHTTP2Timeouts lowers those time limits for HTTP/2 connections that are set. It must
// be called before the first request.
func (t *Transport) ShortenHTTP2Timeouts(to time.Duration) {
	for _, timeout := range []*time.Duration{
		&t.base.HTTP2.SendPingTimeout, &t.base.HTTP2.PingTimeout, &t.base.HTTP2.WriteByteTimeout,
	} {
		*timeout = min(*timeout, to)
	}
}
