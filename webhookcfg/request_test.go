package webhookcfg_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slowReader takes an hour for each read.
type slowReader struct{ io.Reader }

func (s slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Hour)
	return s.Reader.Read(p)
}

// TestLateBody: on a server without read deadlines the handler waits for the body, and
// then applies nothing.
func TestLateBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setRequest()
		r.Body = io.NopCloser(slowReader{r.Body})
		applied := false
		w := httptest.NewRecorder()
		newHandler(t, faulty{fault: func(context.Context) error { applied = true; return nil }}, options()).ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || applied {
			t.Errorf("got %d, applied %v", w.Code, applied)
		}
	})
}

// TestSlowBody: a client that does not send its body gets its response in time, whether
// the handler reads the body or the server does.
func TestSlowBody(t *testing.T) {
	o := options()
	o.Timeout = 50 * time.Millisecond
	address := serve(t, newHandler(t, newRecorder(), o))
	for _, tt := range []struct{ name, request, want string }{
		{"nothing", request("POST", configure, acme, "", "Content-Length: 100"), "400"},
		{"a part", request("POST", configure, acme, "", "Content-Length: 100") + "{", "400"},
		{"unset of all", request("DELETE", configure, acme, "", "Content-Length: 100"), "400"},
		{"chunked unset of all", request("DELETE", configure, acme, "", "Transfer-Encoding: chunked") + "1\r\n{\r\n", "400"},
		{"wrong secret", request("POST", configure, "acme:x", "", "Content-Length: 100"), "401"},
		{"media type", request("POST", configure, acme, "", "Content-Length: 100", "Content-Type: text/plain"), "415"},
	} {
		if a := raw(t, address, tt.request); fmt.Sprint(a.Status) != tt.want {
			t.Errorf("%s: got %v", tt.name, a)
		}
	}
}

// deadlines is a ResponseWriter that records its read deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestReadDeadline: a shorter limit of the server stays. After the body was read there is
// no deadline: its end would look like a client that disconnected.
func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ours := start.Add(10 * time.Second)
		for _, tt := range []struct {
			readTimeout time.Duration
			request     func() *http.Request
			want        []time.Time
		}{
			{0, setRequest, []time.Time{ours, {}}},
			{time.Minute, setRequest, []time.Time{ours, {}}},
			{time.Second, setRequest, nil},
			{0, readRequest, nil},
		} {
			r := tt.request()
			server := &http.Server{ReadTimeout: tt.readTimeout}
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			newHandler(t, newRecorder(), options()).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, server)))
			if diff := cmp.Diff(tt.want, w.set); w.Code != http.StatusOK || diff != "" {
				t.Errorf("ReadTimeout %v: got %d, -want +got:\n%s", tt.readTimeout, w.Code, diff)
			}
		}
	})
}

// TestExpectTooMuch: a client that expects 100 before a body that is too large gets 413.
func TestExpectTooMuch(t *testing.T) {
	address := serve(t, newHandler(t, newRecorder(), options()))
	a := raw(t, address, request("POST", configure, acme, "", "Content-Length: 99999", "Expect: 100-continue"))
	if a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v", a)
	}
}
