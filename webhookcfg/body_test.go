package webhookcfg_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetBody checks which bodies of a set are accepted, and which rule others break.
// Package strictjson tests the syntax.
func TestSetBody(t *testing.T) {
	const (
		object    = "The body must be exactly one JSON object and nothing after it"
		utf8Rule  = "The body must be valid UTF-8 without a byte order mark"
		surrogate = "A string in the body has an unpaired surrogate"
		repeated  = "A key of the body is repeated"
		notString = "Every value in the body must be a string; null is not one; to unset the webhook of an entity, use DELETE with its id at the end of the path"
		urlNeeded = "The key webhook_url is required; to unset the webhook of an entity, use DELETE with its id at the end of the path"
		unknown   = "The body has an unknown key; known are webhook_url and endpoint_id"
		entity    = "An identifier is 1 to 128 of the characters A-Z a-z 0-9 . _ ~ : @ - and neither . nor .."
		urlLength = "The URL must have 1 to 2048 bytes"
		set       = `"webhook_url":"` + hookURL + `"`
		setOne    = "acme set entity e1"
	)
	tests := []struct {
		body, change, rule string
	}{
		{body: `{` + set + `}`, change: "acme set all"},
		{body: `{"endpoint_id":"e1",` + set + `}`, change: setOne},
		{body: `{` + set + `,"endpoint_id":"e1"}`, change: setOne},
		{body: " {\t\"endpoint_id\" :\r\n\"\\u0065\\u0031\" ," + set + "} ", change: setOne},
		{body: `{"webhook_url":"https:\/\/hooks.example.com\/\u0069n"}`, change: "acme set all"},

		// A key written with escapes is the same key (RFC 8259 §8.3).
		{body: `{"endpo\u0069nt_id":"e1",` + set + `}`, change: setOne},
		{body: `{"\u0065ndpoint_id":"e1","\u0077ebhook_url":"` + hookURL + `"}`, change: setOne},

		{body: ``, rule: object},
		{body: `null`, rule: object},
		{body: `[{` + set + `}]`, rule: object},
		{body: `{` + set, rule: object},
		{body: `{` + set + `,}`, rule: object},
		{body: `{` + set + `}{}`, rule: object},
		{body: `{webhook_url:"u"}`, rule: object},

		{body: `{"endpoint_id":null,` + set + `}`, rule: notString},
		{body: `{"endpoint_id":1,` + set + `}`, rule: notString},
		{body: `{"endpoint_id":["e1"],` + set + `}`, rule: notString},
		{body: `{"webhook_url":null}`, rule: notString},

		{body: `{}`, rule: urlNeeded},
		{body: `{"endpoint_id":"e1"}`, rule: urlNeeded},

		{body: `{"endpoint_id":"e1","endpoint_id":"e1",` + set + `}`, rule: repeated},
		{body: `{` + set + `,` + set + `}`, rule: repeated},
		{body: `{"endpoint_id":"e1","endpo\u0069nt_id":"e2",` + set + `}`, rule: repeated},
		{body: `{` + set + `,"webhook\u005furl":"` + hookURL + `"}`, rule: repeated},

		{body: `{"moc_id":"e1",` + set + `}`, rule: unknown},
		{body: `{"Endpoint_id":"e1",` + set + `}`, rule: unknown},
		{body: `{"endpointId":"e1",` + set + `}`, rule: unknown},
		{body: `{"endpoint_id ":"e1",` + set + `}`, rule: unknown},
		{body: `{"":"e1",` + set + `}`, rule: unknown},
		{body: `{"Endpoint\u005fid":"e1",` + set + `}`, rule: unknown},
		{body: "{\"webhoo\u212a_url\":\"" + hookURL + "\"}", rule: unknown},
		{body: `{` + set + `,"x":null}`, rule: unknown},

		{body: "\ufeff{" + set + "}", rule: utf8Rule},
		{body: "{\"webhook_url\":\"\xff\"}", rule: utf8Rule},

		{body: `{"endpoint_id":"\ud800",` + set + `}`, rule: surrogate},
		{body: `{"webhook_url":"\ude00\ud83d"}`, rule: surrogate},

		{body: `{"endpoint_id":"",` + set + `}`, rule: entity},
		{body: `{"endpoint_id":"..",` + set + `}`, rule: entity},
		{body: `{"endpoint_id":"\u0000",` + set + `}`, rule: entity},
		{body: `{"webhook_url":""}`, rule: urlLength + "; to unset the webhook of an entity, use DELETE with its id at the end of the path"},
	}
	st := newRecorder()
	h := newHandler(t, st, options())
	for _, tt := range tests {
		r, w := setRequestOf(configure, tt.body), httptest.NewRecorder()
		h.ServeHTTP(w, r)
		change := strings.Join(st.take(), ", ")
		if want := refusedBody(tt.rule); change != tt.change || tt.rule != "" && !strings.HasSuffix(w.Body.String(), want) {
			t.Errorf("%q: got %d %s and the change %q, want %s and %q", tt.body, w.Code, w.Body, change, want, tt.change)
		}
	}
}

// refusedBody is the end of the body of an error.
func refusedBody(rule string) string { return `,"error_description":"` + rule + `"}` }

// setRequestOf is a set with a body, by acme.
func setRequestOf(path, body string) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("acme", "s3cret")
	return r
}

func TestSetBodyOfVariant(t *testing.T) {
	st := newRecorder()
	h := newHandler(t, st, options())
	for _, tt := range []struct{ key, want string }{{"moc_id", "acme set entity m1"}, {"endpoint_id", ""}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequestOf(variant, `{"`+tt.key+`":"m1","webhook_url":"`+hookURL+`"}`))
		if diff := cmp.Diff(tt.want, strings.Join(st.take(), ", ")); diff != "" {
			t.Errorf("%s: %d %s: -want +got:\n%s", tt.key, w.Code, w.Body, diff)
		}
	}
}
