package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestSecretAsIdentifier: a request with its own secret, or with the token that holds it, in an
// identifier or in the host of a URL is refused, whichever way it comes. It reaches neither the
// store nor a function of the host, and no record, event or response shows it. A short secret can
// be a part of any word, and in the path of its own URL a client can have what it likes.
func TestSecretAsIdentifier(t *testing.T) {
	const long, short = "a-long-random-secret", "s3cret"
	set := func(path, key, id string) string {
		return request("POST", path, "acme:"+long, fmt.Sprintf(`{%q:%q,"webhook_url":"https://h.example.com/"}`, key, id))
	}
	host := func(credentials, url string) string {
		return request("POST", configure, credentials, fmt.Sprintf(`{"endpoint_id":"e1","webhook_url":%q}`, url))
	}
	token := base64.StdEncoding.EncodeToString([]byte("acme:" + long)) // needs no padding
	escaped := strings.ReplaceAll(long, "-", "%2D")
	for _, tt := range []struct {
		name, request string
		want          int
	}{
		{"set", set(configure, "endpoint_id", long), 400},
		{"set, a part", set(configure, "endpoint_id", "e1-"+long+"-x"), 400},
		{"set, escaped", request("POST", configure, "acme:"+long, `{"endpoint_id":"\u0061-long-random-secret","webhook_url":"https://h.example.com/"}`), 400},
		{"set, variant", set(variant, "moc_id", long), 400},
		{"set, hidden by what a log can't show", set(configure, "endpoint_id", strings.ReplaceAll(long, "-", "-\u200b")), 400},
		{"unset", request("DELETE", configure+"/"+long, "acme:"+long, ""), 400},
		{"unset, escaped", request("DELETE", configure+"/"+escaped, "acme:"+long, ""), 400},
		{"unset, variant", request("DELETE", variant+"/"+long, "acme:"+long, ""), 400},
		{"unset, pair", request("DELETE", configure+"/acme:"+long, "acme:"+long, ""), 400},
		{"unset, token", request("DELETE", configure+"/"+token, "acme:"+long, ""), 400},
		{"read", request("GET", configure+"/"+escaped, "acme:"+long, ""), 400},
		{"list", request("GET", configure+"?limit=1&after="+escaped, "acme:"+long, ""), 400},
		{"host", host("acme:"+long, "https://"+long+".example.com/"), 400},
		{"host, refused anyway", host("acme:"+long, "http://"+long+":0/"), 400},
		{"path", host("acme:"+long, "https://h.example.com/"+long+"?"+long), 200},
		{"short, as an identifier", request("DELETE", configure+"/"+short, "acme:"+short, ""), 200},
		{"short, as a host", host("acme:"+short, "https://"+short+".example.com/"), 200},
		{"of another request", request("DELETE", configure+"/"+long, "acme:"+short, ""), 200},
	} {
		var records bytes.Buffer
		var event webhookcfg.Event
		o := options()
		o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.OnEvent = eventInto(&event)
		o.ValidEntityID = func(string) bool { return true }
		o.EntityExists = func(_ context.Context, _, id string) (bool, error) {
			if strings.Contains(id, long) && tt.want == 400 {
				t.Errorf("%s: the host is asked about %s", tt.name, id)
			}
			return true, nil
		}
		st := &recorder{Memory: store.NewMemory()}
		h := hooktest.NewHandler(t, st, verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: "acme"}, nil
		}), o)
		got := raw(t, serve(t, h), tt.request)
		if got.Status != tt.want || event.Status != tt.want {
			t.Errorf("%s: got %d %s, event %d, want %d", tt.name, got.Status, got.Body, event.Status, tt.want)
		}
		if tt.want != 400 {
			continue
		}
		if len(st.take()) > 0 || !strings.Contains(got.Body, "contains the secret") {
			t.Errorf("%s: a change, or another refusal: %s", tt.name, got.Body)
		}
		for _, text := range []string{records.String(), fmt.Sprintf("%+v %s", event, event.Scope.Entity()), got.Body, fmt.Sprint(got.Header)} {
			for _, secret := range []string{long, token} {
				if strings.Contains(strings.ReplaceAll(text, "\u200b", ""), secret) {
					t.Errorf("%s: shown: %s", tt.name, text)
				}
			}
		}
	}
}

// TestEntityCharacters: these and no other bytes may be in an identifier.
func TestEntityCharacters(t *testing.T) {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~:@-"
	st := newRecorder()
	address := serve(t, newHandler(t, st, options()))
	for c := range 256 {
		id, want := "e"+string([]byte{byte(c)}), "400"
		if strings.IndexByte(allowed, byte(c)) >= 0 {
			want = "entity " + id
		}
		if got := outcome(st, raw(t, address, request("DELETE", fmt.Sprintf("%s/e%%%02x", configure, c), acme, ""))); got != want {
			t.Errorf("%q: got %s, want %s", id, got, want)
		}
	}
}

func TestEntitySyntax(t *testing.T) {
	o := options()
	o.ValidEntityID = func(id string) bool { return len(id) < 10 }
	st := newRecorder()
	address := serve(t, newHandler(t, st, o))
	tests := []struct{ target, want string }{
		{configure + "/a%20b%22", `entity a b"`},
		{configure + "/%C3%A9", "entity é"},
		{configure + "/%252f", "entity %2f"},
		{configure + "/%2f", "400"},
		{configure + "/%2e%2e", "400"},
		{configure + "/a%5Cb", "400"},
		{configure + "/a%0Ab", "400"},
		{configure + "/%ff", "400"},
		{configure + "/0123456789", "400"},
		{configure + "/%c3%a9", "entity é"},
		{configure + "/é", "400"},
		{configure + "/a|", "400"},
		{configure + "%2fé", "400"},
		{configure + "%2Fa|", "400"},
		{"/%61pi/v1/configure/configure%2dwebhook/é", "400"},
	}
	for _, tt := range tests {
		if got := outcome(st, raw(t, address, request("DELETE", tt.target, acme, ""))); got != tt.want {
			t.Errorf("DELETE %s: got %s, want %s", tt.target, got, tt.want)
		}
	}
	got := steps(t, address, "set é\" "+hookURL, "get %C3%A9%22")
	if want := `{"endpoint_id":"é\"","webhook_url":"` + hookURL + `","source":"override","since":"2026-01-02T03:04:05Z"}`; got[1] != want {
		t.Errorf("got %s, want %s", got[1], want)
	}
}
