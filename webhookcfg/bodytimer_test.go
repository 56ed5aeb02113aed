package webhookcfg_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// slowReader takes some time for each read.
type slowReader struct {
	time time.Duration
	io.Reader
}

func (s slowReader) Read(p []byte) (int, error) {
	time.Sleep(s.time)
	return s.Reader.Read(p)
}

// TestLateBody: a body that arrives too late changes nothing. If the time ended while it
// arrived, the connection isn't used again, since its context may have ended too. On a server
// without read deadlines, the handler waits for the body.
func TestLateBody(t *testing.T) {
	for _, deadlines := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := setRequest()
			r.Body = io.NopCloser(slowReader{time.Hour, r.Body})
			applied := false
			h := newHandler(t, faulty{fault: func(context.Context) error { applied = true; return nil }}, options())
			w, connection := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}, ""
			if deadlines {
				h.ServeHTTP(w, r)
				connection = "close"
			} else {
				h.ServeHTTP(w.ResponseRecorder, r)
			}
			if w.Code != http.StatusServiceUnavailable || applied || w.Header().Get("Connection") != connection {
				t.Errorf("got %d %v, applied %v", w.Code, w.Header(), applied)
			}
		})
	}
}

// TestSlowBody: a client that doesn't send its body gets its response in time, for any
// request. It doesn't matter whether the handler reads the body, or the server does.
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
		{"not found", request("POST", "/nowhere", acme, "", "Content-Length: 100"), "404"},
		{"not found, chunked", request("POST", "/nowhere", acme, "", "Transfer-Encoding: chunked") + "1\r\n{\r\n", "404"},
		{"not allowed", request("PUT", configure, acme, "", "Content-Length: 100"), "405"},
		{"media type", request("POST", configure, acme, "", "Content-Length: 100", "Content-Type: text/plain"), "415"},
	} {
		for _, request := range []string{tt.request, strings.Replace(tt.request, "Connection: close\r\n", "", 1)} {
			if a := raw(t, address, request); fmt.Sprint(a.Status) != tt.want {
				t.Errorf("%s: got %v", tt.name, a)
			}
		}
	}
}

// deadlineRecorder is a ResponseWriter that records its read deadlines, and takes a minute
// to set one.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (d *deadlineRecorder) SetReadDeadline(t time.Time) error {
	time.Sleep(time.Minute)
	d.deadlines = append(d.deadlines, t)
	return nil
}

// TestReadDeadline: the read deadline is only changed to end the reading of a body whose
// time is over, and never after the body was read or the handler returned.
func TestReadDeadline(t *testing.T) {
	past := time.Unix(1, 0)
	tests := []struct {
		name    string
		request func() *http.Request
		want    []time.Time
	}{
		{"no body", readRequest, nil},
		{"body", setRequest, nil},
		{"unset of all, empty body", func() *http.Request {
			r := httptest.NewRequest("DELETE", configure, io.NopCloser(strings.NewReader("")))
			r.SetBasicAuth("acme", "s3cret")
			return r
		}, nil},
		{"late body", func() *http.Request {
			r := setRequest()
			r.Body = io.NopCloser(slowReader{10*time.Second + time.Millisecond, r.Body})
			return r
		}, []time.Time{past}},
		{"wrong secret, late body", func() *http.Request {
			r := setRequest()
			r.SetBasicAuth("acme", "x")
			r.Body = io.NopCloser(slowReader{time.Hour, r.Body})
			return r
		}, []time.Time{past}},
		{"not found, late body", func() *http.Request {
			r := httptest.NewRequest("POST", "/nowhere", strings.NewReader("{}"))
			r.Body = io.NopCloser(slowReader{time.Hour, r.Body})
			return r
		}, []time.Time{past}},
		{"not found, expected body", func() *http.Request {
			r := httptest.NewRequest("POST", "/nowhere", strings.NewReader("{}"))
			r.Header.Set("Expect", "100-continue")
			r.Body = slowCloser{r.Body}
			return r
		}, []time.Time{time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC)}}, // the bubble starts at midnight
		{"not found, body", func() *http.Request { return httptest.NewRequest("POST", "/nowhere", strings.NewReader("{}")) }, nil},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
			stuck := faulty{fault: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
			newHandler(t, stuck, options()).ServeHTTP(w, tt.request())
			returned := len(w.deadlines)
			time.Sleep(time.Hour)
			if diff := cmp.Diff(tt.want, w.deadlines[:returned]); diff != "" {
				t.Errorf("%s, on return: -want +got:\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.want, w.deadlines); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.name, diff)
			}
		})
	}
}

// slowCloser takes an hour to read what is left.
type slowCloser struct{ io.Reader }

func (s slowCloser) Close() error {
	time.Sleep(time.Hour)
	return nil
}

// TestRequestAfterLateBody: the limit of a late body has no effect on later requests.
func TestRequestAfterLateBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, newRecorder(), options())
		for range 2 {
			late := setRequest()
			late.Body = slowCloser{slowReader{time.Hour, late.Body}}
			h.ServeHTTP(&deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}, late)
			w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, setRequest())
			time.Sleep(time.Hour)
			if w.Code != http.StatusOK || w.Header().Get("Connection") != "" || w.deadlines != nil {
				t.Fatalf("got %d %v, read deadlines %v", w.Code, w.Header(), w.deadlines)
			}
		}
	})
}

// TestReadDeadlineAfterAbort: if the handler aborts, the limit of a body ends, and net/http
// doesn't wait for the body before it closes the connection.
func TestReadDeadlineAfterAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			panic(http.ErrAbortHandler)
		}), options())
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(w, setRequest())
		}()
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]time.Time{time.Unix(1, 0)}, w.deadlines); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestStricterDeadlines: a deadline of a middleware ends the wait for a body.
func TestStricterDeadlines(t *testing.T) {
	const soon = 50 * time.Millisecond
	o := options()
	o.Timeout = time.Hour
	h := newHandler(t, newRecorder(), o)
	for name, middleware := range map[string]func(w http.ResponseWriter, r *http.Request) (*http.Request, context.CancelFunc){
		"read deadline": func(w http.ResponseWriter, r *http.Request) (*http.Request, context.CancelFunc) {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(soon))
			return r, func() {}
		},
		"context": func(_ http.ResponseWriter, r *http.Request) (*http.Request, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(r.Context(), soon)
			return r.WithContext(ctx), cancel
		},
	} {
		address := serveHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r, cancel := middleware(w, r)
			defer cancel()
			h.ServeHTTP(w, r)
		}))
		if a := raw(t, address, request("POST", configure, acme, "", "Content-Length: 100")+"{"); a.Status != http.StatusBadRequest {
			t.Errorf("%s: got %v", name, a)
		}
		if body := rawHTTP2(t, address, nil, requestHeaders(0, "POST", configure)); errorCode(body) != "invalid_request" {
			t.Errorf("%s, HTTP/2: got %s", name, body)
		}
	}
}

// TestConnectionAfterUnreadBody: a body that the handler does not read does not end the
// connection.
func TestConnectionAfterUnreadBody(t *testing.T) {
	conn, err := net.Dial("tcp", serve(t, newHandler(t, newRecorder(), options())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	responses := bufio.NewReader(conn)
	text := strings.Replace(request("POST", configure, "acme:x", strings.Repeat("x", 1<<16)), "Connection: close\r\n", "", 1)
	for range 3 {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(responses, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusUnauthorized || resp.Close {
			t.Errorf("got %s, %v, to be closed: %t", resp.Status, err, resp.Close)
		}
		_ = resp.Body.Close()
	}
}

// TestExpect: a client that waits for a 100 before it sends its body gets the response at
// once if we don't need the body, and a 100 if we do. A client that sends too much gets its
// response at once, too.
func TestExpect(t *testing.T) {
	o := options()
	o.Timeout = time.Hour
	address := serve(t, newHandler(t, newRecorder(), o))
	const expect, length = "Expect: 100-continue", "Content-Length: 100"
	for _, tt := range []struct {
		name, request string
		want          int
	}{
		{"useful", request("POST", configure, acme, "", length, expect), 100},
		{"useful, chunked", request("POST", configure, acme, "", "Transfer-Encoding: chunked", expect), 100},
		{"too large", request("POST", configure, acme, "", "Content-Length: 99999", expect), 413},
		{"media type", request("POST", configure, acme, "", length, expect, "Content-Type: text/plain"), 415},
		{"wrong secret", request("POST", configure, "acme:x", "", length, expect), 401},
		{"unset of one", request("DELETE", configure+"/e1", acme, "", length, expect), 200},
		{"unset of all", request("DELETE", configure, acme, "", length, expect), 400},
		{"not found", request("POST", "/nowhere", acme, "", length, expect), 404},
		{"not allowed", request("PUT", configure, acme, "", length, expect), 405},
		{"too large, unfinished", request("POST", configure, acme, "", "Transfer-Encoding: chunked") + "ffff\r\n" + strings.Repeat(" ", 17_000), 413},
		{"another expectation", request("POST", configure, acme, "", length, "Expect: 200-ok"), 417},
	} {
		for _, request := range []string{tt.request, strings.Replace(tt.request, "Connection: close\r\n", "", 1)} {
			if a := raw(t, address, request); a.Status != tt.want {
				t.Errorf("%s: got %v", tt.name, a)
			}
		}
	}
}

// TestExpectedBodyThatNeverComes: the connection ends in time all the same.
func TestExpectedBodyThatNeverComes(t *testing.T) {
	o := options()
	o.Timeout = 50 * time.Millisecond
	address := serve(t, newHandler(t, newRecorder(), o))
	const expect, length = "Expect: 100-continue", "Content-Length: 100"
	for _, request := range []string{
		request("POST", configure, acme, "", length, expect),
		request("POST", configure, "acme:x", "", length, expect),
		request("DELETE", configure+"/e1", acme, "", length, expect),
		request("POST", "/nowhere", acme, "", length, expect),
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(conn, strings.Replace(request, "Connection: close\r\n", "", 1))
		if all, err := io.ReadAll(conn); err != nil {
			t.Errorf("%q: %v after %q", request, err, all)
		}
	}
}

// TestReadTimeout: where the handler can't set a read deadline, ReadTimeout of the server ends a
// request whose body never comes.
func TestReadTimeout(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	for name, wrapped := range map[string]http.Handler{
		"TimeoutHandler": http.TimeoutHandler(h, time.Hour, ""),
		"no Unwrap": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		}),
	} {
		server := httptest.NewUnstartedServer(wrapped)
		server.Config.ReadTimeout = 50 * time.Millisecond
		server.Start()
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(conn, request("POST", configure, acme, "", "Content-Length: 100"))
		if all, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v after %q", name, err, all)
		}
	}
}
