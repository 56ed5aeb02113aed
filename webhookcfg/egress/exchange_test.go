package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// TestStrayBytes: bytes behind a response cost no message a second attempt if they come with the
// response, and at most one message if they come when the next one is under way. Afterwards
// nothing is open.
func TestStrayBytes(t *testing.T) {
	discardLog(t)
	messages := 6 // the second one tells whether a host is marked, and the others whether that lasts
	if *full {
		messages = 20
	}
	for _, test := range []struct {
		name     string
		response string
		stray    string
		is408    bool
	}{
		{"204 and a body", noContent, "null", false},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n", "null", false},
		{"204 and a line", noContent, "null\r\n", false},
		{"304 and a body", "HTTP/1.1 304 Not Modified\r\n\r\n", "<html>\r\n\r\n</html>", false},
		{"more than the length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ay\n", false},
		{"more than no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "ok", false},
		{"more than the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "\r\n0\r\n\r\n", false},
		{"more than a buffer", noContent, strings.Repeat("<p>null</p>\r\n", 1000), false},
		{"second response", noContent, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", false},
		{"time-out", noContent, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", true},
	} {
		for _, scheme := range []string{"http", "https"} {
			// With the response, once the connection is idle, or once the next request is there.
			for _, when := range []string{"with", "idle", "next"} {
				if when == "next" && (test.name == "second response" || test.is408) {
					continue // nobody can tell
				}
				t.Run(test.name+", "+scheme+", "+when, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ca := newAuthority(t)
						var received, conns atomic.Int32
						send := make(chan struct{})
						policy := inMemory(t, ca, func(conn net.Conn) {
							conn = serverSide(t, conn, scheme, ca)
							conns.Add(1)
							reader := bufio.NewReader(conn)
							for n := 0; ; n++ {
								if _, err := http.ReadRequest(reader); err != nil {
									return
								}
								received.Add(1)
								switch {
								case when == "with":
									go func() { _, _ = io.WriteString(conn, test.response+test.stray) }()
								case when == "next" && n > 0:
									_, _ = io.WriteString(conn, test.stray)
									_, _ = io.WriteString(conn, test.response)
								default:
									_, _ = io.WriteString(conn, test.response)
								}
								if when == "idle" {
									go func() {
										<-send
										_, _ = io.WriteString(conn, test.stray)
									}()
								}
							}
						})
						client := newClient(t, policy)
						failed := 0
						for range messages {
							if err := repeatable(t.Context(), client, scheme+"://"+receiverName+"/"); err != nil {
								failed++
							}
							if when == "idle" {
								synctest.Wait()
								send <- struct{}{}
								synctest.Wait()
							}
						}
						want := 0
						if when == "next" {
							want = 1
						}
						if failed != want || int(received.Load()) != messages {
							t.Errorf("%d of %d failed, %d were received", failed, messages, received.Load())
						}
						synctest.Wait()
						marked := 1
						if test.is408 && when == "idle" {
							marked = 0
						}
						if n := egress.Stray(client); n != marked {
							t.Errorf("%d hosts with stray bytes, want %d", n, marked)
						}
						client.CloseIdleConnections()
						synctest.Wait()
						if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
							t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
						}
					})
				})
			}
		}
	}
}

// repeatable is a POST that net/http sends again if its connection was closed before, as those of
// deliveries are. Without the field, it isn't after a 408.
func repeatable(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header["Idempotency-Key"] = nil
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return readAll(resp)
}

// TestStrayBytesBeforeNextRequest: a request that takes a connection before net/http has looked at what
// came behind the last response isn't sent over it.
func TestStrayBytesBeforeNextRequest(t *testing.T) {
	discardLog(t)
	synctest.Test(t, func(t *testing.T) {
		var received atomic.Int32
		client := newClient(t, inMemory(t, newAuthority(t), func(conn net.Conn) {
			reader := bufio.NewReader(conn)
			for {
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				received.Add(1)
				_, _ = io.WriteString(conn, noContent+"null\r\n")
			}
		}))
		send := func(ctx context.Context) error { return post(ctx, client, "http://"+receiverName+"/", nil, readAll) }
		next := make(chan error, 1)
		first := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(error) {
			go func() { next <- send(t.Context()) }()
			synctest.Wait() // until the next request is sent, or waits
		}})
		if err := send(first); err != nil {
			t.Error(err)
		}
		if err := <-next; err != nil || received.Load() != 2 {
			t.Errorf("the next request failed: %v; %d were received", err, received.Load())
		}
		client.CloseIdleConnections()
	})
}

// TestStrayResponse: a second response that comes when a connection was chosen for the next request, and
// before that is written, isn't taken for the response to it.
func TestStrayResponse(t *testing.T) {
	discardLog(t)
	for _, status := range []string{"200 OK", "410 Gone"} {
		synctest.Test(t, func(t *testing.T) {
			var received atomic.Int32
			early := make(chan struct{})
			client := newClient(t, inMemory(t, newAuthority(t), func(conn net.Conn) {
				reader := bufio.NewReader(conn)
				for {
					if _, err := http.ReadRequest(reader); err != nil {
						return
					}
					n := received.Add(1)
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
					if n == 1 {
						<-early
						_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}))
			send := func(ctx context.Context) (*http.Response, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+receiverName+"/", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err == nil {
					err = readAll(resp)
				}
				return resp, err
			}
			if _, err := send(t.Context()); err != nil {
				t.Fatal(err)
			}
			isFirst := true
			next := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaderField: func(string, []string) {
				if isFirst {
					isFirst = false
					close(early)
					synctest.Wait()
				}
			}})
			resp, err := send(next)
			if err != nil || resp.StatusCode != http.StatusNoContent || received.Load() != 2 {
				t.Errorf("%s: %v, %v; %d of 2 were received", status, resp, err, received.Load())
			}
			client.CloseIdleConnections()
		})
	}
}

// discardLog hides what net/http logs of stray bytes.
func discardLog(t *testing.T) {
	out := log.Writer()
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(out) })
}

// serverSide returns the server's side of a connection, over TLS for https.
func serverSide(t *testing.T, conn net.Conn, scheme string, ca *authority) net.Conn {
	if scheme == "http" {
		return conn
	}
	return tls.Server(conn, ca.valid(t, receiverName))
}

// TestStrayBytesAreForgotten: after an hour, connections are used again.
func TestStrayBytesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns atomic.Int32
		stray := "null"
		policy := inMemory(t, newAuthority(t), func(conn net.Conn) {
			conns.Add(1)
			answering(noContent + stray)(conn)
		})
		client := newClient(t, policy)
		send := func(of string) {
			t.Helper()
			if err := post(egress.ContextWithClient(t.Context(), of), client, "http://"+receiverName+"/", nil, readAll); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		send("acme")
		stray = ""
		conns.Store(0)
		for range 10 {
			send("acme")
		}
		if n := conns.Load(); n != 10 {
			t.Errorf("%d connections for 10 requests after stray bytes", n)
		}
		for range 10 {
			send("another client")
		}
		if n := conns.Load(); n != 11 {
			t.Errorf("%d connections for 10 requests of another client", n-10)
		}
		time.Sleep(time.Hour)
		conns.Store(0)
		for range 10 {
			send("acme")
		}
		if n := conns.Load(); n != 1 {
			t.Errorf("%d connections for 10 requests an hour later", n)
		}
		client.CloseIdleConnections()
	})
}

// TestStrayBytesOfManyHosts: what we remember is bounded, and a client with many hosts loses its
// own.
func TestStrayBytesOfManyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns atomic.Int32
		policy := inMemory(t, newAuthority(t), func(conn net.Conn) {
			conns.Add(1)
			answering(noContent + "null")(conn)
		})
		client := newClient(t, policy)
		discardLog(t)
		send := func(of, host string) {
			ctx := egress.ContextWithClient(t.Context(), of)
			if err := post(ctx, client, "http://"+host+".example/", nil, readAll); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		send("good", "one")
		for n := range egress.MaxStray + 10 {
			send("greedy", fmt.Sprint("h", n))
		}
		if n := egress.Stray(client); n != egress.MaxStray {
			t.Errorf("%d hosts are remembered, want %d", n, egress.MaxStray)
		}
		conns.Store(0)
		send("good", "one")
		send("good", "one")
		if n := conns.Load(); n != 2 {
			t.Error("the host of another client was forgotten")
		}
		if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
			t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
		}
	})
}

// earlyConn is a connection to a receiver that responds and closes without reading the body. The
// kernel tells the writer first, and has the response for the reader.
type earlyConn struct {
	net.Conn
	response *strings.Reader
	refused  chan struct{}
}

func (c *earlyConn) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("\r\n\r\n")) {
		return len(b), nil
	}
	close(c.refused)
	return len(b) / 2, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
}

func (c *earlyConn) Read(b []byte) (int, error) {
	closed := make(chan error, 1)
	go func() {
		_, err := c.Conn.Read(b) // nothing comes: it ends with Close
		closed <- err
	}()
	select {
	case <-c.refused:
	case err := <-closed:
		return 0, err
	}
	select {
	case <-time.After(time.Millisecond): // the reader is late
	case err := <-closed:
		return 0, err
	}
	if c.response.Len() == 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return c.response.Read(b)
}

// TestResponseBeforeTheRequestIsWritten: a receiver that responds without reading the request has
// responded, although writing the rest fails. If it hasn't, the call still ends at once.
func TestResponseBeforeTheRequestIsWritten(t *testing.T) {
	for response, want := range map[string]int{
		"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n":                         413,
		"HTTP/1.1 429 Too Many Requests\r\nX-Long: " + strings.Repeat("x", 1000) + "\r\nContent-Length: 0\r\n\r\n": 429,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                                                           200,
		"HTTP/1.1 200 O": 0,
		"":               0,
	} {
		synctest.Test(t, func(t *testing.T) {
			policy := inMemory(t, newAuthority(t), silence)
			dial := policy.Dial
			policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return &earlyConn{conn, strings.NewReader(response), make(chan struct{})}, err
			}
			client := newClient(t, policy)
			got, begin := 0, time.Now()
			err := post(t.Context(), client, "http://"+receiverName+"/", bytes.Repeat([]byte("x"), 100_000), func(resp *http.Response) error {
				got = resp.StatusCode
				return readAll(resp)
			})
			if got != want || (err == nil) != (got != 0) {
				t.Errorf("%.40q: status %d, %v", response, got, err)
			}
			if took := time.Since(begin); took > 100*time.Millisecond { // net/http itself waits for 50
				t.Errorf("%.40q took %v", response, took)
			}
			client.CloseIdleConnections()
			synctest.Wait()
			if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
				t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
			}
		})
	}
}

// TestStatusOfAMalformedHeader: if the status line is valid, the status counts. Otherwise the
// receiver, which has the message, would get it again.
func TestStatusOfAMalformedHeader(t *testing.T) {
	for _, test := range []struct {
		response string
		want     int // 0: no response
	}{
		{"HTTP/1.1 200 OK\r\nno field\r\n\r\n", 200},
		{"HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n", 200},
		{"HTTP/1.1 204\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 204},
		{"HTTP/1.0 503 Later\r\nTransfer-Encoding: x\r\nbroken\r\n\r\n", 503},
		{"HTTP/1.1 410 Gone\r\nContent-Length: -1\r\n\r\n", 410},
		{"HTTP/1.1 200 OK\n" + strings.Repeat("X-Flood: 1\r\n", 10_000), 200},
		{"HTTP/1.1 200 OK\r\nX: y\r\n", 200}, // and then the end

		{"HTTP/1.1 200 O", 0}, // and then the end
		{"HTTP/1.1 200\x00OK\r\n\r\n", 0},
		{"HTTP/1.1 20 OK\r\n\r\n", 0},
		{"HTTP/1.1  200 OK\r\nbroken\r\n\r\n", 0},
		{"HTTP/2.0 200 OK\r\nbroken\r\n\r\n", 0},
		{"HTTP/1.1 103 Early Hints\r\nbroken\r\n\r\n", 0},
		{"HTTP/1.1 101 Switching Protocols\r\nbroken\r\n\r\n", 0},
		{"garbage\r\nHTTP/1.1 200 OK\r\n\r\n", 0},
		{"nullHTTP/1.1 200 OK\r\n\r\n", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, inMemory(t, newAuthority(t), func(conn net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, test.response)
			}))
			got := 0
			err := post(t.Context(), client, "http://"+receiverName+"/", []byte("{}"), func(resp *http.Response) error {
				got = resp.StatusCode
				return readAll(resp)
			})
			if got != test.want || (err == nil) != (got != 0) || err != nil && reasonOf(err) != egress.ReasonResponse {
				t.Errorf("%.60q: status %d, %v", test.response, got, err)
			}
			synctest.Wait()
			if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
				t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
			}
		})
	}
}

// TestHeaderThatNeverEnds: without the end of the header, a deadline or the caller ends the call,
// and that's what it gets.
func TestHeaderThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, inMemory(t, newAuthority(t), func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := post(ctx, client, "http://"+receiverName+"/", nil, readAll); reasonOf(err) != egress.ReasonTimeout {
			t.Error(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := post(ctx, client, "http://"+receiverName+"/", nil, readAll); reasonOf(err) != "" {
			t.Error(err)
		}

		// A Client with a Timeout closes Cancel when that passes, perhaps before the context has ended.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+receiverName+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		//lint:ignore SA1019 it's what http.Client uses
		req.Cancel = closed
		time.AfterFunc(time.Second, func() { close(closed) })
		if resp, err := client.Transport.RoundTrip(req); err == nil {
			t.Errorf("status %d of a header that we gave up", resp.StatusCode)
			_ = resp.Body.Close()
		}
	})
}
