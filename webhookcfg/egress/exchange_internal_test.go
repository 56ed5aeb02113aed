package egress

import (
	"io"
	"testing"
)

// TestEarlyBytes: net/http gets no bytes that came before a request was written, also if the receiver closes the
// connection with them, but for a 408, with which it says that it closes an idle one.
func TestEarlyBytes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bytes   string
		err     error
		isQuiet bool
		isStray bool
		isEarly bool
	}{
		{"a response", "HTTP/1.1 200 OK", nil, false, false, false},
		{"a second response", "HTTP/1.1 200 OK", nil, true, true, true},
		{"a second response and the end", "HTTP/1.1 200 OK", io.EOF, true, false, true},
		{"a timeout", "HTTP/1.1 408 Request Timeout", nil, true, false, false},
		{"the end", "", io.EOF, true, false, false},
	} {
		e := &exchange{}
		e.start()
		if tt.isQuiet {
			e.end()
		}
		if isStray, isEarly := e.read([]byte(tt.bytes), tt.err); isStray != tt.isStray || isEarly != tt.isEarly {
			t.Errorf("%s: stray %v, early %v", tt.name, isStray, isEarly)
		}
	}
}
