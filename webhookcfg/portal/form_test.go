package portal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// serveSlowly serves a portal whose forms have to arrive in a moment, and returns its address.
// Before the test ends, no connection and no goroutine of the server may be left.
func serveSlowly(t *testing.T, f *fixture) string {
	t.Helper()
	f.handler.Timeout = 50 * time.Millisecond
	server := hooktest.Serve(t, f.new(t))
	return server.Listener.Addr().String()
}

// formRequest is a request with a form, and what comes of it if the form doesn't arrive.
type formRequest struct {
	line, header string
	status       int
	text         string
}

// forms are requests that need no form, and all that do.
func forms() (all []formRequest) {
	for path, r := range routes {
		if r.HasForm {
			all = append(all, formRequest{"POST /portal?page=" + path, "", 400, "didn&#39;t arrive whole and in time"})
		}
	}
	return append(all, otherForms...)
}

var otherForms = []formRequest{
	{"POST /portal?page=unset-all", "Cookie: session=ann\r\n", 400, "didn&#39;t arrive whole and in time"},
	{"POST /portal?page=set", "Origin: https://evil.example.com\r\n", 403, "sent from another site"},
	{"POST /portal?page=nothing", "", 404, "no such page"},
	{"POST /portal?page=key", "", 405, "can&#39;t be used like this"},
	{"POST /portal", "", 405, "can&#39;t be used like this"},
	{"PUT /portal?page=set", "", 405, "can&#39;t be used like this"},
	{"POST /portal?page=set&" + strings.Repeat("x", 5000), "", 414, "too long"},
	{"GET /portal?page=all", "", 403, "Sign in"},
	{"GET /portal", "", 403, "Sign in"},
	{"GET /portal?page=style", "", 200, "--whp-text"},
	{"DELETE /portal?page=style", "", 405, "can&#39;t be used like this"},
}

// unfinished are bodies that never end, and what the client repeats after their start: one
// drop after another, or as fast as it can.
var unfinished = []struct {
	name, start, again string
	every              time.Duration
}{
	{"nothing", "Content-Length: 100\r\n\r\n", "", 0},
	{"a part", "Content-Length: 100\r\n\r\nusername=acme", "", 0},
	{"a part of a chunk", "Transfer-Encoding: chunked\r\n\r\n10\r\nid=1", "", 0},
	{"no last chunk", "Transfer-Encoding: chunked\r\n\r\n4\r\nid=1\r\n", "", 0},
	{"drips", "Content-Length: 10000\r\n\r\n", "a", 5 * time.Millisecond},
	{"drips chunks", "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", 5 * time.Millisecond},
	{"floods", "Transfer-Encoding: chunked\r\n\r\n", "ff\r\n" + strings.Repeat("a", 255) + "\r\n", 0},
	{"waits for a 100", "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", "", 0},
	{"waits for a 100, chunked", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", "", 0},
}

// TestFormThatNeverEnds: whoever sends a form that never ends, to whatever path, gets a page
// with a sentence in time, and then the connection ends. Nothing changes.
func TestFormThatNeverEnds(t *testing.T) {
	for _, mode := range []string{"host", "sign-in"} {
		f := newFixture(t)
		if mode == "host" {
			f.hosted()
		}
		address := serveSlowly(t, f)
		var clients sync.WaitGroup
		for _, form := range forms() {
			for _, body := range unfinished {
				status, text := form.status, form.text
				if mode == "host" && strings.Contains(form.line, "sign-") || body.name == "floods" && form.line+form.header != "POST /portal?page=set" {
					continue
				}
				if body.name == "floods" {
					text = "" // as soon as it's too large, or late
				}
				clients.Go(func() {
					name := mode + ": " + form.line[:min(len(form.line), 30)] + ": " + body.name
					response, err := exchangeRaw(address, form.line+" HTTP/1.1\r\nHost: "+address+"\r\nContent-Type: application/x-www-form-urlencoded\r\n"+form.header+body.start, body.again, body.every)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if mode == "host" && status == 403 && text == "Sign in" {
						text = "not signed in"
					}
					// A client that doesn't stop sending can lose the response to the reset of its connection.
					if (response != "" || body.again == "") && (!strings.HasPrefix(response, fmt.Sprint(status)) && !(body.name == "floods" && strings.HasPrefix(response, "413")) || !strings.Contains(response, text) || status == 400 && strings.Contains(response, "is kept")) {
						t.Errorf("%s: got %s", name, response)
					}
				})
			}
		}
		clients.Wait()
		if got := f.resolved(t, "e1"); got != "none" {
			t.Errorf("changed: %s", got)
		}
	}
}

// exchangeRaw sends a request, and then text again and again. It returns the status and the
// content of the response, and fails if the server then keeps the connection.
func exchangeRaw(address, request, again string, every time.Duration) (response string, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	if again != "" {
		var sender sync.WaitGroup
		defer sender.Wait()
		sender.Go(func() {
			for err := error(nil); err == nil; {
				if every > 0 {
					<-time.After(every)
				}
				_, err = io.WriteString(conn, again)
			}
		})
		defer conn.Close()
	}
	reader := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= http.StatusOK {
			response = fmt.Sprint(resp.StatusCode, " ", string(body))
			break
		}
	}
	if _, err := io.Copy(io.Discard, reader); errors.Is(err, os.ErrDeadlineExceeded) {
		return response, errors.New("the server still holds the connection")
	}
	return response, nil
}

// TestFormTooLarge: a form that is too large gets its page at once, even if it never ends, and
// before a 100 asks for it.
func TestFormTooLarge(t *testing.T) {
	f := newFixture(t)
	f.handler.Timeout = time.Hour
	f.handler.ProbeTimeout = time.Second
	server := hooktest.Serve(t, f.new(t))
	for _, body := range []string{
		"Content-Length: 20000\r\n\r\n",
		"Content-Length: 20000\r\nExpect: 100-continue\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\nffff\r\n" + strings.Repeat("a", 20000),
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(conn, "POST /?page=sign-in HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-www-form-urlencoded\r\n"+body)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("%.40q: got %v, %v", body, resp, err)
		}
		conn.Close()
	}
}

// TestFormReadBefore: if a middleware has read the form, the log says so, and the page doesn't
// blame the person.
func TestFormReadBefore(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	f.around = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			next.ServeHTTP(w, r)
		})
	}
	f.serve(t).signIn().expect(t, http.StatusInternalServerError, "Something went wrong on our side", "!secret is wrong")
	if !strings.Contains(records.String(), "a middleware has read the form") {
		t.Errorf("logged %s", records)
	}
}

// TestFormCutOff: a form that a middleware has cut off changes nothing. The end of an identifier or a
// URL may be missing.
func TestFormCutOff(t *testing.T) {
	f := newFixture(t)
	f.around = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("page") == "set" {
				r.Body = struct {
					io.Reader
					io.Closer
				}{io.LimitReader(r.Body, r.ContentLength-1), r.Body}
			}
			next.ServeHTTP(w, r)
		})
	}
	p := f.serve(t)
	p.signIn()
	p.post("set", "id", "e1", "url", hookURL).expect(t, http.StatusBadRequest, "didn&#39;t arrive whole")
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("set %s", got)
	}
}

var clientField = regexp.MustCompile(`name="client" value="([^"]*)"`)

// TestTwoTabs: a form that was shown for one client changes nothing once the person has
// signed in for another, in another tab. They see whom they act for, and keep what they typed,
// but not the word that confirms a change of all.
func TestTwoTabs(t *testing.T) {
	for _, mode := range []string{"host", "sign-in", "sign-in again"} {
		for _, path := range formPaths {
			t.Run(mode+": "+path, func(t *testing.T) {
				f, q, tests := complete(t)
				f.verifier = pair{}
				q.all["client-of-bert"] = q.all[acme]
				var enter func(p *person, id string)
				if mode == "host" {
					f.hosted()
					f.portal.Client = func(r *http.Request) (string, string, error) {
						c, err := r.Cookie("session")
						if err != nil {
							return "", "", nil
						}
						return "client-of-" + c.Value, "ann@example.com", nil
					}
					enter = func(p *person, id string) { p.setCookie("session", id) }
				} else {
					enter = func(p *person, id string) {
						p.get("sign-in")
						p.post("sign-in", "username", id, "password", secret, "then", "overview")
					}
				}
				hooktest.Apply(t, f.store, hooktest.SetAll("client-of-bert", 1), hooktest.Set("client-of-bert", "e1", 2), hooktest.Set("client-of-anna", "e1", 3))
				before := contents(t, f.store)
				p := f.serve(t)
				enter(p, "anna")
				shownClient := clientField.FindStringSubmatch(p.get("all").text)
				if shownClient == nil || shownClient[1] != "client-of-anna" {
					t.Fatalf("the form's client: %q", shownClient)
				}
				var fields []string
				for _, field := range formFields(path) {
					fields = append(fields, field, values[field])
				}
				fields[slices.Index(fields, "client")+1] = shownClient[1]
				var got shown
				if mode == "sign-in again" { // the session ends, and somebody else signs in at the form
					p.setCookie(cookieName, "ended")
					asks := p.post(path, fields...)
					asks.expect(t, http.StatusForbidden, `name="client" value="client-of-anna"`)
					got = p.post("sign-in", append(fields, "username", "bert", "password", secret, "then", path, "again", "1")...)
				} else {
					enter(p, "bert")
					got = p.post(path, fields...)
				}
				want := []string{"for another client", "client-of-bert", `name="client" value="client-of-bert"`, `!name="client" value="client-of-anna"`, `!value="all"`, "!still here"}
				if slices.Contains(fields, "url") {
					want = append(want, html.EscapeString(otherURL))
				}
				got.expect(t, http.StatusConflict, want...)
				if after := contents(t, f.store); after != before || tests.Load() != 0 || len(q.again) > 0 {
					t.Errorf("changed from %s to %s, %d tests, sent again %q", before, after, tests.Load(), q.again)
				}
				fields[slices.Index(fields, "client")+1] = clientField.FindStringSubmatch(got.text)[1]
				p.post(path, fields...).expect(t, http.StatusOK, `class="notice good"`)
				if after := contents(t, f.store); after == before && tests.Load() == 0 && len(q.again) == 0 {
					t.Error("the form that was shown again does nothing")
				}
			})
		}
	}
}

// TestFormWithoutClient: a form that names no client changes nothing.
func TestFormWithoutClient(t *testing.T) {
	f := newFixture(t).hosted()
	p := f.serve(t)
	p.setCookie("session", "ann")
	p.post("set", "client", "", "id", "e1", "url", hookURL).expect(t, http.StatusConflict, html.EscapeString(hookURL))
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("changed: %s", got)
	}
}

// contents returns what a store in memory has.
func contents(t *testing.T, st webhookcfg.Store) string {
	t.Helper()
	var all strings.Builder
	for _, client := range []string{acme, "client-of-anna", "client-of-bert"} {
		page, err := st.(*store.Memory).List(t.Context(), client, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(client + ": " + hooktest.Describe(page.Base) + ";")
		for _, o := range page.Overrides {
			all.WriteString(" " + o.Entity + " " + hooktest.Describe(o.Webhook))
		}
	}
	return all.String()
}

// TestCrossOrigin: another site, another port and an old browser on another site change nothing,
// and sign nobody in.
func TestCrossOrigin(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	p := f.serve(t)
	p.signIn()
	for name, fields := range map[string][]string{
		"another site":      {"Sec-Fetch-Site", "cross-site"},
		"another port":      {"Sec-Fetch-Site", "same-site"},
		"another origin":    {"Origin", "https://evil.example.com"},
		"an unknown origin": {"Origin", "null"},
	} {
		for _, path := range pathsWith(func(r portal.Route) bool { return r.HasForm }) {
			r := p.request("POST", path, "id", "e1", "url", hookURL, "confirm", "all", "username", acme, "password", secret)
			r.Header.Set(fields[0], fields[1])
			got := p.do(r)
			got.expect(t, http.StatusForbidden, "sent from another site")
			advice := "let your proxy pass on the field Host"
			if fields[0] == "Sec-Fetch-Site" {
				advice = "refused a form that another site sent"
			}
			if last := records.last(); !strings.Contains(last, advice) || !strings.Contains(last, fields[1]) || !strings.Contains(last, "source=127.0.0.1") {
				t.Errorf("%s: logged %s", name, last)
			}
			if got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %s sets a cookie", name, path)
			}
		}
	}
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("changed: %s", got)
	}
	r := p.request("POST", "set", "id", "e1", "url", hookURL)
	r.Header.Set("Origin", "https://"+"\xff"+strings.Repeat("x", 100_000))
	p.do(r).expect(t, http.StatusForbidden)
	if last := records.last(); len(last) > 1000 {
		t.Errorf("logged %d bytes", len(last))
	}
	r = p.request("POST", "set", "id", "e1", "url", hookURL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Host = "127.0.0.1:1" // as a proxy may send
	p.do(r)
	if got := f.resolved(t, "e1"); got != "override "+hookURL {
		t.Errorf("the page's own form: %s", got)
	}
}

// TestFormsAreCopied: what a store or an event keeps of a form or a session is as long as its text.
// It doesn't keep the whole form, or the secret.
func TestFormsAreCopied(t *testing.T) {
	const forms = 200
	f := newFixture(t)
	long := strings.Repeat("s", 2500)
	f.verifier = hooktest.NewVerifier(t, acme, long)
	var mu sync.Mutex
	var kept []webhookcfg.Event
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, e)
	}
	p := f.serve(t)
	p.signInAt(p.get(""), long).expect(t, http.StatusOK, "Sign out")
	filler := strings.Repeat("+", 7<<10)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range forms {
		form := url.Values{"client": {acme}, "id": {fmt.Sprint("e", i)}}.Encode() + "&url=" + url.QueryEscape(hookURL) + filler + "&again=" + filler
		p.postRaw("set", form).expect(t, http.StatusOK)
	}
	if each := (heap() - before) / forms; each > 3<<10 {
		t.Errorf("each keeps %d bytes", each)
	}
	runtime.KeepAlive(f)
	runtime.KeepAlive(kept)
}
