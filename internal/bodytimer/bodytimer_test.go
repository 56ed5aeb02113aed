package bodytimer_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/bodytimer"
	"example.com/go-webhookcfg/internal/hooktest"
)

// handlers are the ways to treat a body, with the status for a whole body and for one that
// doesn't arrive. No status means that the connection ends without a response.
var handlers = []struct {
	name        string
	serve       http.HandlerFunc
	whole, late int
}{
	{"reads", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}, 200, 400},
	{"parses", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "form", http.StatusBadRequest)
		}
	}, 200, 400},
	{"reads a byte", func(_ http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, 1)) }, 200, 200},
	{"closes", func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }, 200, 200},
	{"refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, 401, 401},
	{"refuses the size", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }, 413, 413},
	{"writes a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 20_000)) }, 200, 200},
	{"flushes", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, 200, 200},
	{"writes nothing", func(http.ResponseWriter, *http.Request) {}, 200, 200},
	{"panics", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 0},
}

// bodies are bodies that never end, as they follow the request line, and what the client
// repeats after that.
var bodies = []struct{ name, start, again string }{
	{"nothing", "Content-Length: 100\r\n\r\n", ""},
	{"a part", "Content-Length: 100\r\n\r\na=1", ""},
	{"a part of a chunk", "Transfer-Encoding: chunked\r\n\r\n10\r\na=1", ""},
	{"no last chunk", "Transfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n", ""},
	{"no end of the trailer", "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: ", ""},
	{"drops", "Content-Length: 10000000\r\n\r\n", "a"},
	{"drops of chunks", "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"},
	{"waits for a 100", "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", ""},
	{"waits for a 100, chunked", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", ""},
	{"doesn't wait for a 100", "Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n", "a"},
	{"waits for a 100, as the last request", "Content-Length: 100\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n", ""},
}

// middlewares are what can be around the body. Those that log it often lose its Close.
var middlewares = map[string]func(io.ReadCloser) io.ReadCloser{
	"":                   func(body io.ReadCloser) io.ReadCloser { return body },
	"Close does nothing": func(body io.ReadCloser) io.ReadCloser { return io.NopCloser(io.TeeReader(body, io.Discard)) },
}

// serve serves next with a limit, below a middleware.
func serve(t *testing.T, next http.Handler, limit time.Duration, middleware func(io.ReadCloser) io.ReadCloser) (address string) {
	t.Helper()
	server := hooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = middleware(r.Body)
		bodytimer.Serve(next, limit, w, r)
	}))
	return server.Listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

const requestLine = "POST / HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-www-form-urlencoded\r\n"

// TestBodyThatNeverEnds: the client gets its response, and the server closes the connection
// by itself.
func TestBodyThatNeverEnds(t *testing.T) {
	for name, middleware := range middlewares {
		t.Run(name, func(t *testing.T) {
			var clients sync.WaitGroup
			for _, h := range handlers {
				address := serve(t, h.serve, 20*time.Millisecond, middleware)
				for _, b := range bodies {
					conn := dial(t, address)
					clients.Go(func() {
						_, _ = io.WriteString(conn, requestLine+b.start)
						clients.Go(func() {
							for err := error(nil); b.again != "" && err == nil; {
								_, err = io.WriteString(conn, b.again)
							}
						})
						r := bufio.NewReader(conn)
						// A client that never stops sending may lose the response to the reset of its
						// connection.
						if status := finalStatus(r); status != h.late && (status != 0 || b.again == "") {
							t.Errorf("%s, %s: got status %d, want %d", h.name, b.name, status, h.late)
						}
						if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("%s, %s: the server still holds the connection", h.name, b.name)
						}
					})
				}
			}
			clients.Wait()
		})
	}
}

// TestBodyCutOff: a middleware that reports the end of a body before it has come doesn't hold the
// connection, whether it cuts the body off or decodes it.
func TestBodyCutOff(t *testing.T) {
	for name, cutOff := range map[string]func(io.Reader) io.Reader{
		"limits": func(body io.Reader) io.Reader { return io.LimitReader(body, 3) },
		"decodes": func(body io.Reader) io.Reader {
			return io.MultiReader(io.LimitReader(body, 3), strings.NewReader(strings.Repeat("1", 1000)))
		},
	} {
		for _, h := range handlers {
			address := serve(t, h.serve, 20*time.Millisecond, func(body io.ReadCloser) io.ReadCloser {
				return struct {
					io.Reader
					io.Closer
				}{cutOff(body), body}
			})
			conn := dial(t, address)
			_, _ = io.WriteString(conn, requestLine+"Content-Length: 100\r\n\r\na=1")
			r := bufio.NewReader(conn)
			if status := finalStatus(r); status != h.whole {
				t.Errorf("%s, %s: got status %d, want %d", name, h.name, status, h.whole)
			}
			if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %s: the server still holds the connection", name, h.name)
			}
		}
	}
}

// flushed is a ResponseWriter that says when it's flushed.
type flushed struct {
	http.ResponseWriter
	flush func()
}

func (w flushed) FlushError() error {
	w.flush()
	return nil
}

// TestFlush: the time for the body ends before a flush sends the header. If it were over after
// that, it would be too late to close the connection, and its later requests would fail.
func TestFlush(t *testing.T) {
	body := strings.NewReader("a=1")
	flushes := 0
	w := flushed{httptest.NewRecorder(), func() {
		flushes++
		if n := body.Len(); n != 0 {
			t.Errorf("%d bytes are left at the flush", n)
		}
	}}
	bodytimer.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
	}), time.Hour, w, httptest.NewRequest("POST", "/", body))
	if flushes != 1 {
		t.Errorf("%d flushes", flushes)
	}
}

// finalStatus returns the status of the response after a 100, or 0 without a response.
func finalStatus(r *bufio.Reader) int {
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return 0
		}
		if resp.StatusCode >= http.StatusOK {
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode
		}
	}
}

// TestWholeBody: a body that arrives in time has no effect on later requests, even if the
// handler doesn't read it.
func TestWholeBody(t *testing.T) {
	for name, middleware := range middlewares {
		for _, h := range handlers {
			address := serve(t, h.serve, time.Hour, middleware)
			conn := dial(t, address)
			responses := bufio.NewReader(conn)
			for range 3 {
				_, _ = fmt.Fprintf(conn, "%sContent-Length: 65536\r\n\r\n%65536s", requestLine, "a=1")
				if status := finalStatus(responses); status != h.whole {
					t.Errorf("%s, %s: got status %d, want %d", name, h.name, status, h.whole)
				}
				if h.whole == 0 || h.whole == http.StatusRequestEntityTooLarge {
					break // the connection ends with the response
				}
			}
		}
	}
}

// TestTooLarge: a client that sends too much gets the response at once, even if it doesn't
// finish the body.
func TestTooLarge(t *testing.T) {
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 10))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}), time.Hour, middlewares[""])
	conn := dial(t, address)
	_, _ = fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\nffff\r\n%s", requestLine, strings.Repeat("a", 100))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.Errorf("got %v, %v", resp, err)
	}
}

// TestReadTimeout: a response that comes before the rest of the body doesn't give the client more
// time than the server does.
func TestReadTimeout(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodytimer.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}), time.Hour, w, r)
	}))
	server.Config.ReadTimeout, server.Config.ReadHeaderTimeout = 50*time.Millisecond, time.Minute
	server.Start()
	t.Cleanup(server.Close)
	conn := dial(t, server.Listener.Addr().String())
	_, _ = io.WriteString(conn, requestLine+"Content-Length: 100\r\n\r\na=1")
	r := bufio.NewReader(conn)
	if status := finalStatus(r); status != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d", status)
	}
	if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server still holds the connection")
	}
}
