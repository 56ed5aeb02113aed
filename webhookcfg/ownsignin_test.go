package webhookcfg_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// The tests of this file hold the example of a sign-in of the host's own to the rules of the
// interface, over HTTP.

const (
	ownKey, ownSession = "acme-key-5f2b91c7", "acme-session-81c04ae3"

	withKey     = "Authorization: Bearer " + ownKey
	withSession = "Cookie: session=" + ownSession
)

func testCallers() *callers {
	return &callers{
		keys: map[[sha256.Size]byte]caller{
			sha256.Sum256([]byte(ownKey)):               {"acme", "deployment"},
			sha256.Sum256([]byte("other-key-77aa01b2")): {"other", "robot"},
		},
		sessions: map[[sha256.Size]byte]caller{sha256.Sum256([]byte(ownSession)): {"acme", "ada"}},
	}
}

// serveSite serves the example. Its store has a base and an override of acme.
func serveSite(t testing.TB, o *webhookcfg.Options) (address string, st *recorder) {
	t.Helper()
	st = newRecorder()
	site, err := newSite(st, testCallers(), *o)
	if err != nil {
		t.Fatal(err)
	}
	fillBefore(t, st)
	return serve(t, site), st
}

func fillBefore(t testing.TB, st *recorder) {
	t.Helper()
	hooktest.Apply(t, st, hooktest.SetAll("acme", 1), hooktest.Set("acme", "e1", 2))
	st.take()
}

// siteRequest is a request, and the change that it makes.
type siteRequest struct {
	method, target, body string
	fields               []string
	want                 string // "" if it's refused or only reads
}

// siteRequests are requests of a client that has signed in.
func siteRequests() (all []siteRequest) {
	const set = `"webhook_url":"` + hookURL + `"`
	for path, keys := range map[string][2]string{configure: {"endpoint_id", "moc_id"}, variant: {"moc_id", "endpoint_id"}} {
		own, others := keys[0], keys[1]
		post := func(body, want string, fields ...string) {
			all = append(all, siteRequest{"POST", path, body, fields, want})
		}
		post(`{`+set+`}`, "acme set all")
		post(`{"`+own+`":"e2",`+set+`}`, "acme set entity e2")
		for _, id := range []string{
			`null`, `""`, `0`, `false`, `[]`, `["e1"]`, `{}`, `" "`, `"e1/"`, `"."`, `".."`, `"%65"`, `"\ud800"`, `"é"`,
		} {
			post(`{"`+own+`":`+id+`,`+set+`}`, "")
		}
		for _, key := range []string{others, strings.ToUpper(own), own + " ", strings.ReplaceAll(own, "_", ""), "id", ""} {
			post(`{"`+key+`":"e1",`+set+`}`, "")
		}
		post(`{"`+own+`":"e1","`+own+`":"e1",`+set+`}`, "")
		post(`{"`+own+`":"e1","\u0065ndpoint_id":"e1","\u006doc_id":"e1",`+set+`}`, "")
		post(`{`+set+`,`+set+`}`, "")
		for _, body := range []string{`{`, `[]`, `null`, `{` + set + `}x`, `{` + set + `}{}`, "\ufeff{" + set + `}`, "{\"a\xff\":\"\"," + set + `}`, `{"webhook_url":null}`, `{}`} {
			post(body, "")
		}
		post("", "")
		post(`{"webhook_url":"`+strings.Repeat("x", 17<<10)+`"}`, "")
		post(`{`+set+`}`, "", "Content-Type: text/plain")
		post(`{`+set+`}`, "", "Content-Encoding: gzip")
		post(`{"webhook_url":"http://hooks.example.com/"}`, "")
		for _, target := range []string{"?" + own + "=e1", "?", "/", "//", "/e1", "/..", "/%2f"} {
			all = append(all, siteRequest{"POST", path + target, `{` + set + `}`, nil, ""})
		}
		all = append(all,
			siteRequest{"DELETE", path, "", nil, "acme unset all"},
			siteRequest{"DELETE", path, `{"` + own + `":"e1"}`, nil, ""},
			siteRequest{"DELETE", path, "", []string{"Expect: 100-continue"}, ""},
			siteRequest{"DELETE", path, "2\r\n{}\r\n0\r\n\r\n", []string{"Transfer-Encoding: chunked"}, ""},
			siteRequest{"DELETE", path + "/", "", nil, ""},
			siteRequest{"GET", path, "", nil, ""},
			siteRequest{"GET", path + "?limit=1&after=a", "", nil, ""},
			siteRequest{"GET", path + "?limit=0", "", nil, ""},
			siteRequest{"GET", path + "/e1", "", nil, ""},
			siteRequest{"GET", path + "/", "", nil, ""},
			siteRequest{"PUT", path, `{` + set + `}`, nil, ""},
			siteRequest{"OPTIONS", path + "/e1", "", nil, ""},
		)
	}
	for _, row := range pathtest.Rows("", webhookcfg.AllScopeExact) {
		want := ""
		if row.Before == "all" || strings.HasPrefix(row.Before, "entity ") {
			want = "acme unset " + row.Before
		}
		all = append(all, siteRequest{"DELETE", row.Target, "", nil, want})
	}
	return all
}

// TestOwnSignInLikeBasic: a key and a session get the same responses as Basic credentials, and so
// the same codes and texts. Nothing that only looks like a request for all entities changes any.
func TestOwnSignInLikeBasic(t *testing.T) {
	o := options()
	o.AllScope = webhookcfg.AllScopeExact
	basic := newRecorder()
	address := serve(t, newHandler(t, basic, o).Before(http.NewServeMux()))
	plain := options()
	plain.Reads = false // the example sets it
	own, st := serveSite(t, plain)
	for _, r := range siteRequests() {
		send := func(address string, st *recorder, credentials string, fields ...string) (response, string) {
			fillBefore(t, st)
			text := request(r.method, r.target, credentials, r.body, append(fields, r.fields...)...)
			if slices.Contains(r.fields, "Transfer-Encoding: chunked") {
				text = strings.Replace(text, fmt.Sprintf("Content-Length: %d\r\n", len(r.body)), "", 1)
			}
			got := raw(t, address, text)
			got.Header.Del("Date")
			return got, strings.Join(st.take(), ", ")
		}
		want, _ := send(address, basic, acme)
		for _, way := range []string{withKey, withSession} {
			got, change := send(own, st, "", way)
			name := fmt.Sprintf("%s %.200s %.200s %q", r.method, r.target, r.body, r.fields)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -Basic +%s:\n%s", name, way, diff)
			}
			if change != r.want {
				t.Errorf("%s: it makes the change %q, want %q", name, change, r.want)
			}
		}
	}
}

// TestOwnSignInRefuses: everybody else gets one and the same 401, before anything is said about
// identifiers and URLs. It doesn't make a browser ask for an id and a secret.
func TestOwnSignInRefuses(t *testing.T) {
	address, st := serveSite(t, options())
	basic := func(id, secret string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	}
	for _, fields := range [][]string{
		nil,
		{"Authorization: Bearer"},
		{"Authorization: Bearer "},
		{"Authorization: Bearer unknown"},
		{"Authorization: Bearer " + ownSession},
		{"Authorization: " + ownKey},
		{"Authorization: Token " + ownKey},
		{"Authorization: Bearer  " + ownKey},
		{"Authorization: Bearer " + ownKey + ",Bearer " + ownKey},
		{withKey, withKey},
		{withKey, basic("acme", "s3cret")},
		{basic("acme", "s3cret")},
		{basic("key", ownKey)},
		{basic("session", ownSession)},
		{"Cookie: session="},
		{"Cookie: session=ended"},
		{"Cookie: session=" + ownKey},
		{"Cookie: session=" + ownSession + "; session=other"},
		{"Cookie: session=other; session=" + ownSession},
		{"Authorization: Bearer unknown", withSession},
		{basic("acme", "s3cret"), withSession},
	} {
		for _, r := range []siteRequest{
			{method: "POST", target: configure, body: `{"endpoint_id":"e1","webhook_url":"` + hookURL + `"}`},
			{method: "POST", target: configure, body: `{"webhook_url":"no URL"}`},
			{method: "POST", target: variant, body: `{`},
			{method: "DELETE", target: configure},
			{method: "DELETE", target: configure + "/e1"},
			{method: "DELETE", target: configure + "/"},
			{method: "DELETE", target: configure + "/%2f"},
			{method: "GET", target: configure},
			{method: "GET", target: variant + "/unknown"},
		} {
			got := raw(t, address, request(r.method, r.target, "", r.body, fields...))
			got.Header.Del("Date")
			want := response{http.StatusUnauthorized, http.Header{
				"Www-Authenticate": {`Bearer realm="Acme modules"`}, "Content-Type": {"application/json"}, "Content-Length": got.Header["Content-Length"],
				"Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
			}, errorBody("invalid_client", "Invalid client credentials")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s with %q: -want +got:\n%s", r.method, r.target, fields, diff)
			}
			if changes := st.take(); len(changes) > 0 {
				t.Errorf("%s %s with %q: %q", r.method, r.target, fields, changes)
			}
		}
	}
}

// TestOwnSignInSeparatesTenants: a key only reaches the webhooks of its owner.
func TestOwnSignInSeparatesTenants(t *testing.T) {
	address, st := serveSite(t, options())
	got := raw(t, address, request("DELETE", configure, "", "", "Authorization: bearer other-key-77aa01b2"))
	if changes := st.take(); got.Status != http.StatusOK || !slices.Equal(changes, []string{"other unset all"}) {
		t.Errorf("%d, %q", got.Status, changes)
	}
}

// TestOwnSignInCrossOrigin: another site can't use the session of a person who visits it.
func TestOwnSignInCrossOrigin(t *testing.T) {
	address, st := serveSite(t, options())
	for _, tt := range []struct {
		fields []string
		want   int
	}{
		{nil, 200},
		{[]string{"Sec-Fetch-Site: same-origin"}, 200},
		{[]string{"Origin: http://test"}, 200},
		{[]string{"Sec-Fetch-Site: cross-site"}, 403},
		{[]string{"Sec-Fetch-Site: same-site"}, 403},
		{[]string{"Origin: https://evil.example"}, 403},
		{[]string{"Origin: null"}, 403},
	} {
		for _, text := range []string{
			request("DELETE", configure, "", "", append(tt.fields, withSession)...),
			request("POST", configure, "", `{"webhook_url":"`+hookURL+`"}`, append(tt.fields, withSession)...),
		} {
			got := raw(t, address, text)
			changes := st.take()
			if got.Status != tt.want || (len(changes) > 0) != (tt.want == 200) {
				t.Errorf("%q: %d, and it makes the changes %q", tt.fields, got.Status, changes)
			}
			if want := errorBody("cross_origin", "The request comes from another site"); tt.want == 403 && got.Body != want {
				t.Errorf("%q: %s", tt.fields, got.Body)
			}
		}
	}
}

// TestOwnSignInEvents: events and logs name the client, the way in, and who acted. They never have
// the key or the session, even if an error of the store does.
func TestOwnSignInEvents(t *testing.T) {
	for _, tt := range []struct{ field, way, actor, secret string }{
		{withKey, "key", "deployment", ownKey},
		{withSession, "session", "ada", ownSession},
	} {
		var mu sync.Mutex
		var events []webhookcfg.Event
		var records bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}
		site, err := newSite(faulty{newRecorder(), func(context.Context) error { return fmt.Errorf("no row for %s", tt.secret) }}, testCallers(), *o)
		if err != nil {
			t.Fatal(err)
		}
		address := serve(t, site)
		for _, method := range []string{"GET", "DELETE"} {
			raw(t, address, request(method, configure+"/e1", "", "", tt.field))
		}
		raw(t, address, request("DELETE", configure+"/%2f", "", "", tt.field))
		mu.Lock()
		for i, status := range []int{503, 503, 400} {
			if e := events[i]; e.Client != "acme" || e.Credential != tt.way || e.Actor != tt.actor || e.Status != status {
				t.Errorf("the event is %+v, want %q by %q, and %d", e, tt.way, tt.actor, status)
			}
		}
		mu.Unlock()
		if text := fmt.Sprint(events, records.String()); strings.Contains(text, tt.secret) || !strings.Contains(text, "actor="+tt.actor) {
			t.Errorf("the log has the secret, or not the actor:\n%s", text)
		}
	}
}

// TestOwnSignInDeadlines: the handler can still bound how long it waits for a body.
func TestOwnSignInDeadlines(t *testing.T) {
	failed := make(chan error, 1)
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		failed <- http.NewResponseController(bearerWriter{w}).SetReadDeadline(time.Now().Add(time.Minute))
	}))
	raw(t, address, request("GET", "/", "", ""))
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
