package webhookcfg_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestBasicCredentials(t *testing.T) {
	enc := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	tests := []struct {
		name       string
		fields     []string
		id, secret string // both "" where the field must be refused
	}{
		// The examples of RFC 7617 §2 and §2.1.
		{"aladdin", []string{"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}, "Aladdin", "open sesame"},
		{"pound sign", []string{"Basic dGVzdDoxMjPCow=="}, "test", "123£"},

		{"lower case", []string{"basic " + enc("c:s")}, "c", "s"},
		{"upper case", []string{"BASIC " + enc("c:s")}, "c", "s"},
		{"several spaces", []string{"Basic   " + enc("c:s")}, "c", "s"},
		{"first colon splits", []string{"Basic " + enc("c:s:t:")}, "c", "s:t:"},
		{"longest token", []string{"Basic " + enc("c:"+strings.Repeat("s", 3070))}, "c", strings.Repeat("s", 3070)},

		{"none", nil, "", ""},
		{"empty", []string{""}, "", ""},
		{"two fields", []string{"Basic " + enc("c:s"), "Basic " + enc("c:s")}, "", ""},
		{"list", []string{"Basic " + enc("c:s") + ", Basic " + enc("c:s")}, "", ""},
		{"scheme alone", []string{"Basic"}, "", ""},
		{"scheme and space", []string{"Basic "}, "", ""},
		{"other scheme", []string{"Bearer " + enc("c:s")}, "", ""},
		{"scheme as prefix", []string{"Basics " + enc("c:s")}, "", ""},
		{"Kelvin-like scheme", []string{"Ba\u017fic " + enc("c:s")}, "", ""},
		{"tab", []string{"Basic\t" + enc("c:s")}, "", ""},
		{"tab after space", []string{"Basic \t" + enc("c:s")}, "", ""},
		{"no padding", []string{"Basic " + strings.TrimRight(enc("c:sec"), "=")}, "", ""},
		{"URL alphabet", []string{"Basic " + base64.URLEncoding.EncodeToString([]byte("c:\u00bf\u00bf\u00bf\u00ff"))}, "", ""},
		{"loose bits", []string{"Basic Yzpzf=="}, "", ""},
		{"second spelling", []string{"Basic Yzpzdh=="}, "", ""},
		{"line break inside", []string{"Basic Yz\npz"}, "", ""},
		{"carriage return inside", []string{"Basic Yz\rpz"}, "", ""},
		{"trailing space", []string{"Basic " + enc("c:s") + " "}, "", ""},
		{"no colon", []string{"Basic " + enc("cs")}, "", ""},
		{"empty id", []string{"Basic " + enc(":s")}, "", ""},
		{"empty secret", []string{"Basic " + enc("c:")}, "", ""},
		{"NUL", []string{"Basic " + enc("c:s\x00")}, "", ""},
		{"line feed in id", []string{"Basic " + enc("c\n:s")}, "", ""},
		{"DEL", []string{"Basic " + enc("c:s\x7f")}, "", ""},
		{"invalid UTF-8", []string{"Basic " + enc("c:\xff")}, "", ""},
		{"too long", []string{"Basic " + enc("c:"+strings.Repeat("s", 3073))}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, secret, cause := credentials(t, tt.fields...)
			if id != tt.id || secret != tt.secret || (cause == "") != (tt.id != "") {
				t.Errorf("got %q, %q, %s", id, secret, cause)
			}
		})
	}
}

// credentials returns the credentials that reach the verifier of a request with these
// Authorization fields, or the cause of its refusal.
func credentials(t *testing.T, fields ...string) (id, secret, cause string) {
	t.Helper()
	o := options()
	o.OnEvent = func(_ context.Context, e webhookcfg.Event) {
		if e.Status != http.StatusOK {
			cause = e.Err.Error()
		}
	}
	h := hooktest.NewHandler(t, newRecorder(), verifier(func(_ context.Context, i, s string) (webhookcfg.Client, error) {
		id, secret = i, s
		return webhookcfg.Client{ID: "acme"}, nil
	}), o)
	r := httptest.NewRequest("DELETE", configure, nil)
	r.Header["Authorization"] = fields
	h.ServeHTTP(httptest.NewRecorder(), r)
	return id, secret, cause
}

// FuzzBasicCredentials compares accepted fields with net/http.
func FuzzBasicCredentials(f *testing.F) {
	for _, seed := range []string{"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "basic  Yzpz", "Basic Yzpzdh==", "Bearer x", "Basic", "Basic \xff", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		id, secret, cause := credentials(t, field)
		if cause != "" {
			if strings.Contains(cause, field) && len(field) > 8 {
				t.Fatalf("the error %q quotes the field", cause)
			}
			return
		}
		isControl := func(c rune) bool { return c < ' ' || c == 0x7F }
		if id == "" || secret == "" || strings.Contains(id, ":") || !utf8.ValidString(id+secret) || strings.ContainsFunc(id+secret, isControl) {
			t.Fatalf("%q gave %q and %q", field, id, secret)
		}
		scheme, token, _ := strings.Cut(field, " ")
		r := http.Request{Header: http.Header{"Authorization": {scheme + " " + strings.TrimLeft(token, " ")}}}
		if u, p, ok := r.BasicAuth(); !ok || u != id || p != secret {
			t.Fatalf("%q gave %q and %q, net/http %q and %q (%v)", field, id, secret, u, p, ok)
		}
	})
}
