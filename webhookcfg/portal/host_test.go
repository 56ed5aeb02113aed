package portal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
	"example.com/go-webhookcfg/webhookcfg/sent"
	"github.com/google/go-cmp/cmp"
)

const (
	sessionToken = "s3ssion-t0ken-of-ann"
	refusedURL   = "http://10.0.0.1/t0ken"
)

// hostFunction is a function of a host that the portal calls.
type hostFunction struct {
	name  string
	path  string // of a page or a form that calls it
	set   func(f *fixture, fail func(ctx context.Context) error)
	panic int    // the status after a panic
	error int    // the status after an error; 0 if the function returns none
	text  string // on the page
}

// logged returns what the log calls the function.
func (h hostFunction) logged() string {
	if operation, ok := map[string]string{"Options.Test": "operation=test", "Options.Try": "operation=try", "Options.SigningKey": "operation=signing_key"}[h.name]; ok {
		return operation
	}
	return h.name
}

// request returns a request whose response needs the function.
func (h hostFunction) request(p *person) *http.Request {
	if !routes[h.path].HasForm {
		return p.request("GET", h.path)
	}
	typed := refusedURL
	if strings.HasPrefix(h.path, "try") {
		typed = hookURL // since only an allowed one is tried
	}
	return p.request("POST", h.path, fieldsOf(h.path, "id", "e1", "url", typed, "message", "msg_01", "since", "hour")...)
}

// failingQueue is a sent.Queue that only fails.
type failingQueue struct {
	fail func(ctx context.Context) error
}

func (q failingQueue) Notifications(ctx context.Context, _ string, _ sent.Query) (sent.Page, error) {
	return sent.Page{}, q.fail(ctx)
}

func (q failingQueue) Notification(ctx context.Context, _, _ string) (sent.Notification, error) {
	return sent.Notification{State: "waiting"}, q.fail(ctx)
}

func (q failingQueue) SendAgain(ctx context.Context, _ string, _ sent.Selection) error {
	return q.fail(ctx)
}

func (q failingQueue) PlanSendAgain(ctx context.Context, _ string, _ sent.Selection) (sent.Plan, error) {
	return sent.Plan{}, q.fail(ctx)
}

func setQueue(f *fixture, fail func(ctx context.Context) error) {
	f.portal.Notifications = failingQueue{fail: fail}
}

var hostFunctions = []hostFunction{
	{"Options.Client", "set", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Client = func(r *http.Request) (string, string, error) { return "", "", fail(r.Context()) }
	}, 500, 503, "Send it again"},
	{"Options.Test", "test", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Test = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Send a test"},
	{"Options.Try", "try", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Try = func(ctx context.Context, _, _ string, _ egress.URL) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Try it"},
	{"Options.SigningKey", "key", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.SigningKey = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (string, error) { return "", fail(ctx) }
	}, 500, 503, "Go to the webhooks"},
	{"DeliveryStatus", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.handler.DeliveryStatus = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
			return webhookcfg.DeliveryStatus{}, fail(ctx)
		}
	}, 200, 200, "Not known right now"},
	{"DeliveryStatus", "overview", func(f *fixture, fail func(ctx context.Context) error) {
		f.handler.DeliveryStatus = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
			return webhookcfg.DeliveryStatus{}, fail(ctx)
		}
	}, 200, 200, "Not known right now"},
	{"notifications", "overview", setQueue, 200, 200, "We can&#39;t show notifications right now"},
	{"notifications", "notifications", setQueue, 500, 503, "Go to the webhooks"},
	{"notifications", "notification?message=msg_01", setQueue, 500, 503, "Go to the webhooks"},
	{"notifications", "again-all?since=hour", setQueue, 500, 503, "Go to the webhooks"},
	{"Options.Text", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Text = func(r *http.Request, _ string) string { _ = fail(r.Context()); return "" }
	}, 200, 0, "Turn off"},
	{"Options.Layout", "entity?id=e1", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Layout = func(w http.ResponseWriter, r *http.Request, page portal.Page) {
			_ = fail(r.Context())
			w.WriteHeader(page.Status)
			_, _ = io.WriteString(w, string(page.Content))
		}
	}, 500, 0, "Something went wrong on our side"},
	{"Options.Layout", "set", func(f *fixture, fail func(ctx context.Context) error) {
		f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
			w.Header().Set("Content-Length", "10")
			w.Header().Set("Content-Encoding", "gzip")
			_ = fail(context.TODO()) // there is none to hang on
			panic(page.Content)      // which has all that was typed
		}
	}, 500, 0, "Something went wrong on our side"},
}

// TestHostFails: if a function of the host fails or panics, the person reads a sentence on a
// whole page, nothing that they typed is lost, and nothing changes. The log has the reason,
// and shows neither a URL's path nor the session.
func TestHostFails(t *testing.T) {
	quoted := &url.Error{Op: "Post", URL: hookURL, Err: errors.New("dial tcp: refused")} // as http.Client returns it
	session := fmt.Errorf("no session %s", sessionToken)
	for _, function := range hostFunctions {
		for name, fail := range map[string]func(context.Context) error{
			"error quotes the URL":     func(context.Context) error { return quoted },
			"error quotes the session": func(context.Context) error { return session },
			"error panics":             func(context.Context) error { return (*url.Error)(nil) },
			"panic quotes the URL":     func(context.Context) error { panic("no row for " + hookURL) },
			"panic with an error":      func(context.Context) error { panic(quoted) },
			"panic quotes the session": func(context.Context) error { panic(session) },
			"panic of the runtime":     func(context.Context) error { var none []error; return none[len(none)] },
		} {
			t.Run(function.name+" of "+function.path+": "+name, func(t *testing.T) {
				f := newFixture(t).hosted()
				records := f.record()
				f.portal.Client = func(*http.Request) (string, string, error) { return acme, "ann", nil }
				function.set(f, fail)
				hooktest.Apply(t, f.store, hooktest.At(1, webhookcfg.SetChange(acme, webhookcfg.Entity("e1"), egress.NewURL(hookURL))))
				p := f.serveLogged(t, records)
				p.setCookie("session", sessionToken)
				status := function.error
				if strings.HasPrefix(name, "panic") || name == "error panics" {
					status = function.panic
				}
				if function.error == 0 && !strings.HasPrefix(name, "panic") || !strings.HasPrefix(function.name, "Options.") && strings.HasSuffix(name, "session") {
					return // the function can't fail in this way
				}
				got := p.do(function.request(p))
				if function.path == "set" {
					got.expect(t, status, refusedURL)
				}
				got.expect(t, status, "</html>", function.text)
				if n := strings.Count(records.String(), "level=ERROR"); n != 1 || !strings.Contains(records.String(), function.logged()) {
					t.Errorf("%d records of the failure: %s", n, records)
				}
				for _, secret := range []string{"t0ken", "s3cret", sessionToken} {
					records.expectWithout(t, name, secret)
				}
				if name == "panic of the runtime" && (!strings.Contains(records.String(), "index out of range") || !strings.Contains(records.String(), "host_test.go")) && function.path != "set" {
					t.Errorf("the log doesn't say where: %s", records)
				}
				if got := f.resolved(t, "e1"); got != "override "+hookURL {
					t.Errorf("changed: %s", got)
				}
			})
		}
	}
}

// TestAuthorizationInError: a host's session can come in the field Authorization, and the error
// can quote only the token or the password in it.
func TestAuthorizationInError(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("ann:" + sessionToken))
	for field, quoted := range map[string]string{"Bearer " + sessionToken: sessionToken, "Basic " + basic: sessionToken + " or " + basic} {
		f := newFixture(t).hosted()
		records := f.record()
		f.portal.Client = func(*http.Request) (string, string, error) { return "", "", errors.New("no session " + quoted) }
		p := f.serve(t)
		r := p.request("GET", "")
		r.Header.Set("Authorization", field)
		p.do(r).expect(t, http.StatusServiceUnavailable)
		if !strings.Contains(records.String(), "no session [secret]") {
			t.Errorf("%s: logged %s", field, records)
		}
		records.expectWithout(t, field, sessionToken)
		records.expectWithout(t, field, basic)
	}
}

// TestSearchIsBounded: a stranger chooses the cookies and, if the host quotes one, its error. Looking
// for many of them in a long text would take longer than any timeout, so the log goes without it.
func TestSearchIsBounded(t *testing.T) {
	for what, fields := range map[string]struct{ session, others string }{
		"a long text":  {strings.Repeat("z", 9<<10), ""},
		"many cookies": {sessionToken, strings.Repeat("; c="+sessionToken+"0", 500)},
	} {
		f := newFixture(t).hosted()
		records := f.record()
		f.portal.Client = func(r *http.Request) (string, string, error) {
			session, err := r.Cookie("session")
			if err != nil {
				return "", "", err
			}
			return "", "", errors.New("no session " + session.Value)
		}
		p := f.serve(t)
		r := p.request("GET", "")
		r.Header.Set("Cookie", "session="+fields.session+fields.others)
		p.do(r).expect(t, http.StatusServiceUnavailable, "</html>")
		if !strings.Contains(records.String(), "withheld") {
			t.Errorf("%s: logged %.200s", what, records)
		}
		records.expectWithout(t, what, fields.session)
	}
}

// TestManyEqualCookies: a stranger can send the same cookie hundreds of times, and a host's error can
// quote a field of the request that consists of it. Looking for it needs little memory.
func TestManyEqualCookies(t *testing.T) {
	f := newFixture(t).hosted()
	records := f.record()
	f.portal.Client = func(r *http.Request) (string, string, error) {
		return "", "", errors.New("no tenant " + r.Header.Get("X-Tenant"))
	}
	r := httptest.NewRequest("GET", "/?page=overview", nil)
	r.Header.Set("Cookie", strings.Repeat("a=xxxxxxxxxxxxxxxx;", 430))
	r.Header.Set("X-Tenant", strings.Repeat("x", 8000))
	f.new(t).ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(records.String(), "no tenant [secret]") || strings.Contains(records.String(), "xxxx") {
		t.Errorf("logged %.1000s", records)
	}

	f.handler.Logger = slog.New(slog.DiscardHandler)
	h := f.new(t)
	h.ServeHTTP(httptest.NewRecorder(), r) // it allocates what only the first request does
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ServeHTTP(httptest.NewRecorder(), r)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
		t.Errorf("%d bytes", used)
	}
}

// TestShortCookies: a person's own short cookies hide no word of the reason. One that is as long as
// the token of a session does.
func TestShortCookies(t *testing.T) {
	const reason = "no such table"
	token := sessionToken[:16]
	for cookies, want := range map[string]string{
		"such":                     reason + ": " + token,
		"a=such; b=table; c=no":    reason + ": " + token,
		"a=" + token[:15]:          reason + ": " + token,
		"a=such; session=" + token: reason + ": [secret]",
	} {
		f := newFixture(t).hosted()
		records := f.record()
		f.portal.Client = func(*http.Request) (string, string, error) { return "", "", errors.New(reason + ": " + token) }
		p := f.serve(t)
		r := p.request("GET", "")
		r.Header.Set("Cookie", cookies)
		p.do(r).expect(t, http.StatusServiceUnavailable)
		if !strings.Contains(records.String(), want) {
			t.Errorf("%s: logged %s", cookies, records)
		}
	}
}

// lazyError counts how often somebody asks for its text.
type lazyError struct{ asked int }

func (e *lazyError) Error() string { e.asked++; return "gone" }

// TestPersonLeaves: if the person has gone away, the failure of a host's function isn't logged, and
// its reason isn't searched for secrets either.
func TestPersonLeaves(t *testing.T) {
	f := newFixture(t).hosted()
	records, err := f.record(), new(lazyError)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	f.portal.Client = func(*http.Request) (string, string, error) { return "", "", err }
	pages := f.new(t)
	for _, want := range []int{1, 0} {
		err.asked = 0
		pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?page=overview", nil).WithContext(ctx))
		if n := strings.Count(records.String(), "portal: Options.Client failed"); n != 1 || err.asked != want {
			t.Errorf("%d records, the text was asked for %d times", n, err.asked)
		}
		leave()
	}
}

// TestPanicAfterPersonLeft: a panic is logged even if the person has gone away.
func TestPanicAfterPersonLeft(t *testing.T) {
	f := newFixture(t).hosted()
	records := f.record()
	ctx, leave := context.WithCancel(t.Context())
	f.portal.Client = func(*http.Request) (string, string, error) { leave(); panic("on purpose") }
	f.new(t).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if !strings.Contains(records.String(), "portal: Options.Client panicked") {
		t.Errorf("logged %s", records)
	}
}

// TestHostGetsNoBody: a function of the host that asks for a field can't read a body without a limit,
// or leave files of a form behind that nobody removes.
func TestHostGetsNoBody(t *testing.T) {
	const form = "--x\r\nContent-Disposition: form-data; name=\"tenant\"; filename=\"f\"\r\n\r\nbody\r\n--x--\r\n"
	f := newFixture(t).hosted()
	calls := make(map[string]bool)
	check := func(function string, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := r.ParseMultipartForm(1); len(body) > 0 || r.ContentLength != 0 || r.MultipartForm != nil || r.FormValue("page") == "" {
			t.Errorf("%s of %s: %d bytes, a length of %d, form %v (%v)", function, r.Method, len(body), r.ContentLength, r.MultipartForm, err)
		}
		calls[function+" of "+r.Method] = true
	}
	f.portal.Client = func(r *http.Request) (string, string, error) { check("Client", r); return acme, "ann", nil }
	f.portal.Text = func(r *http.Request, _ string) string { check("Text", r); return "" }
	f.portal.Layout = func(w http.ResponseWriter, r *http.Request, page portal.Page) {
		check("Layout", r)
		w.WriteHeader(page.Status)
	}
	p := f.serve(t)
	for method, mediaType := range map[string]string{"GET": "multipart/form-data; boundary=x", "POST": "application/x-www-form-urlencoded", "PUT": "multipart/form-data; boundary=x"} {
		r, err := http.NewRequest(method, p.base+"?page=set", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", mediaType)
		p.do(r)
	}
	if len(calls) != 7 { // nobody asks whose page it is for a form that isn't one, or for a PUT
		t.Errorf("called %v", calls)
	}
}

// TestHostFunctions: each function of a host is one of those that the tests let fail and hang.
func TestHostFunctions(t *testing.T) {
	for field := range reflect.TypeFor[portal.Options]().Fields() {
		isTested := slices.ContainsFunc(hostFunctions, func(h hostFunction) bool { return h.name == "Options."+field.Name })
		if field.Type.Kind() == reflect.Func && !isTested {
			t.Errorf("no test of Options.%s", field.Name)
		}
	}
}

// serveLogged is like serve, but the records get the server's own log, too.
func (f *fixture) serveLogged(t *testing.T, records *records) *person {
	t.Helper()
	server := httptest.NewUnstartedServer(f.new(t))
	server.Config.ErrorLog = log.New(records, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	client.Jar, _ = cookiejar.New(nil)
	return &person{t, client, server.URL + "/my/portal"}
}

// TestHostHangs: a function of the host that waits until its context ends delays a page for
// Timeout at most, even if the page has many rows, and the log says which one it was.
func TestHostHangs(t *testing.T) {
	for _, function := range hostFunctions {
		t.Run(function.name+" of "+function.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t).hosted()
				records := f.record()
				f.portal.Client = func(*http.Request) (string, string, error) { return acme, "ann", nil }
				hangs, called := 0, false
				function.set(f, func(ctx context.Context) error {
					called = true
					if ctx == context.TODO() {
						return nil // the function gets none
					}
					if ctx.Done() == nil {
						t.Error("the context never ends")
						return nil
					}
					hangs++
					<-ctx.Done()
					return ctx.Err()
				})
				for i := range 30 {
					hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprint("e", i), i+1))
				}
				r := function.request(&person{t, nil, "http://portal.example/"})
				w := httptest.NewRecorder()
				start := time.Now()
				f.new(t).ServeHTTP(w, r)
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
				if !called || w.Body.Len() == 0 {
					t.Errorf("called: %v, a page of %d bytes", called, w.Body.Len())
				}
				if function.error != 0 && hangs > 0 && (strings.Count(records.String(), "level=ERROR") > 2 || !strings.Contains(records.String(), function.logged())) {
					t.Errorf("%d hangs, logged %s", hangs, records)
				}
			})
		})
	}
}

// TestTimeForLayout: whatever hangs before, the layout and the texts still have time.
func TestTimeForLayout(t *testing.T) {
	for _, function := range hostFunctions {
		if function.name == "Options.Text" || function.name == "Options.Layout" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t).hosted()
			f.portal.Client = func(*http.Request) (string, string, error) { return acme, "ann", nil }
			function.set(f, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			f.portal.Text = func(_ *http.Request, key string) string {
				if key == "title" {
					return "Haken"
				}
				return ""
			}
			var layouts, late int
			f.portal.Layout = func(w http.ResponseWriter, r *http.Request, page portal.Page) {
				layouts++
				if r.Context().Err() != nil || page.Title == portal.Texts()["title"] {
					late++
				}
				w.WriteHeader(page.Status)
			}
			hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
			f.new(t).ServeHTTP(httptest.NewRecorder(), function.request(&person{t, nil, "http://portal.example/"}))
			if layouts != 1 || late > 0 {
				t.Errorf("%s of %s: %d layouts, %d late", function.name, function.path, layouts, late)
			}
		})
	}
}

// TestHeaderOfFailedLayout: the plain page has its own header, whatever the layout has done to it.
func TestHeaderOfFailedLayout(t *testing.T) {
	f := newFixture(t)
	header := func(layout func(w http.ResponseWriter, _ *http.Request, _ portal.Page)) http.Header {
		f.portal.Layout = layout
		w := httptest.NewRecorder()
		f.new(t).ServeHTTP(w, httptest.NewRequest("GET", "/?page=all", nil))
		return w.Result().Header
	}
	want := header(nil)
	got := header(func(w http.ResponseWriter, _ *http.Request, _ portal.Page) {
		for field := range want {
			w.Header().Set(field, "of the layout")
		}
		w.Header().Add("Set-Cookie", "a=b")
		w.Header().Del("Referrer-Policy")
		for _, field := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "Location", "Refresh"} {
			w.Header().Set(field, "10")
		}
		panic("on purpose")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLayoutWritesNothing: a refusal isn't an empty 200, which would look like a success.
func TestLayoutWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, _ portal.Page) {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w := httptest.NewRecorder()
	f.new(t).ServeHTTP(w, httptest.NewRequest("GET", "/?page=all", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), "We can&#39;t do this right now") {
		t.Errorf("%d, %v: %s", w.Code, w.Header(), w.Body)
	}
}

// TestSlowTexts: once the time for a page is over, nobody waits for the translation of its texts.
func TestSlowTexts(t *testing.T) {
	f := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		f.handler.Timeout = time.Second
		records := f.record()
		f.portal.Text = func(*http.Request, string) string { time.Sleep(time.Second * 2 / 3); return "" }
		h, start := f.new(t), time.Now()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?page=all", nil))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the page took %v", took)
		}
		if strings.Count(records.String(), "portal: Options.Text took the rest of the time") != 1 {
			t.Errorf("logged %s", records)
		}
	})
}

// TestLayoutFailsLate: if the layout fails after the header was sent, the connection breaks, so
// nobody takes a part for the whole page.
func TestLayoutFailsLate(t *testing.T) {
	for name, send := range map[string]func(http.ResponseWriter){
		"a status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"a part":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") },
		"nothing":  func(http.ResponseWriter) {},
	} {
		f := newFixture(t).hosted()
		records := f.record()
		f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
			send(w)
			_ = http.NewResponseController(w).Flush()
			panic(page)
		}
		p := f.serveLogged(t, records)
		resp, err := p.client.Get(p.base)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: got %s", name, body)
		}
		resp.Body.Close()
		if !strings.Contains(records.String(), "portal: Options.Layout panicked") || strings.Contains(records.String(), "http: ") {
			t.Errorf("%s: logged %s", name, records)
		}
	}
}

// TestFlushWithoutEffect: below a middleware that can't flush, a flush sends nothing, so a layout
// that fails after it still gets a whole page.
func TestFlushWithoutEffect(t *testing.T) {
	f := newFixture(t).hosted()
	f.portal.Layout = func(w http.ResponseWriter, _ *http.Request, _ portal.Page) {
		panic(http.NewResponseController(w).Flush())
	}
	w := httptest.NewRecorder()
	f.new(t).ServeHTTP(struct{ http.ResponseWriter }{w}, httptest.NewRequest("GET", "/?page=overview", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "</html>") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestHostAborts: a function of the host can break the connection.
func TestHostAborts(t *testing.T) {
	abort := func() error { panic(fmt.Errorf("on purpose: %w", http.ErrAbortHandler)) }
	for name, set := range map[string]func(f *fixture){
		"overview": func(f *fixture) {
			f.portal.Client = func(*http.Request) (string, string, error) { return "", "", abort() }
		},
		"key": func(f *fixture) {
			f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", abort() }
		},
	} {
		f := newFixture(t).hosted()
		records := f.record()
		set(f)
		p := f.serveLogged(t, records)
		p.setCookie("session", "ann")
		if _, err := p.client.Do(p.request("GET", name)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if strings.Contains(records.String(), "http: ") || strings.Contains(records.String(), "portal: ") {
			t.Errorf("%s: logged %s", name, records)
		}
	}
}

// TestHostReturnsNonsense: an empty key, and a reason or a state that no text explains, are
// failures of the host.
func TestHostReturnsNonsense(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", nil }
	f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "sleepy", nil }
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
	p := f.serve(t)
	p.signIn()
	p.get("key?id=e1").expect(t, http.StatusServiceUnavailable, "do this right now")
	p.post("test", "client", acme, "id", "e1").expect(t, http.StatusServiceUnavailable, "do this right now", "!sleepy")
	for _, want := range []string{"there is no key", `unknown reason \"sleepy\"`} {
		if !strings.Contains(records.String(), want) {
			t.Errorf("want %s in %s", want, records)
		}
	}
	p.post("test-all").expect(t, http.StatusConflict, "No webhook is set, so no test was sent")
}

// TestHostEvents: a test, a try or a key that the host fails to give has an event, with the person
// and the entity. One that it gives has none, and neither has one that failed for the receiver.
func TestHostEvents(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    error
		want   []string
	}{
		{"", nil, nil},
		{"unreachable", nil, nil},
		{"", errBroken, []string{"test acme ann entity e1 503", "try acme ann all 503", "signing_key acme ann entity e1 503"}},
	} {
		f := newFixture(t).hosted()
		var got []string
		f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) {
			if e.Operation != "read" && e.Operation != "list" && e.Operation != "check" {
				got = append(got, fmt.Sprintf("%s %s %s %s %d", e.Operation, e.Client, e.Actor, e.Scope, e.Status))
			}
		}
		f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return tt.reason, tt.err }
		f.portal.Try = func(context.Context, string, string, egress.URL) (string, error) { return tt.reason, tt.err }
		f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "whsec_", tt.err }
		hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
		p := f.serve(t)
		p.setCookie("session", "ann")
		p.post("test", "client", acme, "id", "e1")
		p.post("try-all", "client", acme, "url", hookURL)
		p.get("key?id=e1")
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q, %v: got %q, want %q", tt.reason, tt.err, got, tt.want)
		}
	}
}

// TestLoggerPanics: a page doesn't depend on the logger.
func TestLoggerPanics(t *testing.T) {
	f := newFixture(t).hosted()
	f.handler.Logger = textLogger(nil) // writes to a nil Writer
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
	p := f.serve(t)
	p.setCookie("session", "ann")
	p.get("key").expect(t, http.StatusServiceUnavailable, "do this right now")
}

// brokenBody is a body whose reader panics, as one of a host's middleware can.
type brokenBody struct{ io.Reader }

func (brokenBody) Close() error             { return nil }
func (brokenBody) Read([]byte) (int, error) { panic("read " + hookURL) }

// TestPagePanics: a panic anywhere else gets a whole page, too, and the log doesn't show what
// it quotes.
func TestPagePanics(t *testing.T) {
	f := newFixture(t)
	records := f.record()
	r := httptest.NewRequest("POST", "/?page=set", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.ContentLength = brokenBody{}, 100
	w := httptest.NewRecorder()
	f.new(t).ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "Something went wrong on our side") || !strings.Contains(w.Body.String(), "</html>") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(records.String(), "host_test.go") {
		t.Errorf("logged %s", records)
	}
	records.expectWithout(t, "the panic", "t0ken")
}
