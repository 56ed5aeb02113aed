package egress

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// TestDialAfterTheLastUse: net/http starts a dial in a goroutine of its own, perhaps only after
// the call has taken another connection and ended. No exported function can delay it for so
// long. If the pool has forgotten the host, its connection would be left open.
func TestDialAfterTheLastUse(t *testing.T) {
	p := newPool(1, func() *http.Transport { return new(http.Transport) })
	c := p.start(t.Context(), "a.example:443")
	c.end()
	conn, err := c.dial(t.Context(), func(context.Context) (net.Conn, error) {
		near, _ := net.Pipe()
		return near, nil
	})
	if conn != nil || err == nil {
		t.Errorf("%v, %v", conn, err)
	}
	if len(p.hosts) != 0 || p.idle.Len() != 0 {
		t.Errorf("%d hosts, %d idle connections", len(p.hosts), p.idle.Len())
	}
}
