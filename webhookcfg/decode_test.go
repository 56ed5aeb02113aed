package webhookcfg_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

func TestDecodeSet(t *testing.T) {
	one := func(entity, url string) webhookcfg.SetBody {
		return webhookcfg.SetBody{Entity: entity, HasEntity: true, URL: url}
	}
	all := func(url string) webhookcfg.SetBody { return webhookcfg.SetBody{URL: url} }
	const (
		object    = "The body must be exactly one JSON object and nothing after it"
		utf8Rule  = "The body must be valid UTF-8 without a byte order mark"
		surrogate = "A string in the body has an unpaired surrogate"
		repeated  = "A key of the body is repeated"
		notString = "Every value in the body must be a string; leave a key out rather than send null"
		urlNeeded = "The key webhook_url is required"
		unknown   = "The body has an unknown key; known are webhook_url and endpoint_id"
	)
	tests := []struct {
		body string
		want webhookcfg.SetBody
		rule string
	}{
		{body: `{"webhook_url":"u"}`, want: all("u")},
		{body: `{"endpoint_id":"e1","webhook_url":"u"}`, want: one("e1", "u")},
		{body: `{"webhook_url":"u","endpoint_id":"e1"}`, want: one("e1", "u")},
		{body: " \t\r\n{ \"endpoint_id\" :\n\"e1\" , \"webhook_url\":\t\"u\" } \r\n", want: one("e1", "u")},
		{body: `{"endpoint_id":"","webhook_url":""}`, want: one("", "")},
		{body: `{"endpoint_id":"\u0065\u00311","webhook_url":"\"\\\/\b\f\n\r\t"}`, want: one("e11", "\"\\/\b\f\n\r\t")},
		{body: `{"webhook_url":"\ud83d\ude00 \uFFFD \u00e9 é"}`, want: all("😀 \uFFFD é é")},
		{body: `{"webhook_url":"\u0000"}`, want: all("\x00")},

		{body: ``, rule: object},
		{body: ` `, rule: object},
		{body: `null`, rule: object},
		{body: `"x"`, rule: object},
		{body: `[]`, rule: object},
		{body: `[{"webhook_url":"u"}]`, rule: object},
		{body: `{`, rule: object},
		{body: `{"webhook_url"`, rule: object},
		{body: `{"webhook_url":`, rule: object},
		{body: `{"webhook_url":"u`, rule: object},
		{body: `{"webhook_url":"u"`, rule: object},
		{body: `{"webhook_url":"u",`, rule: object},
		{body: `{"webhook_url":"u",}`, rule: object},
		{body: `{,"webhook_url":"u"}`, rule: object},
		{body: `{"webhook_url" "u"}`, rule: object},
		{body: `{"webhook_url":"u" "endpoint_id":"e"}`, rule: object},
		{body: `{webhook_url:"u"}`, rule: object},
		{body: `{'webhook_url':'u'}`, rule: object},
		{body: `{"webhook_url":"u"}{}`, rule: object},
		{body: `{"webhook_url":"u"}x`, rule: object},
		{body: `{"webhook_url":"u"} null`, rule: object},
		{body: "{\"webhook_url\":\"u\"}\x00", rule: object},
		{body: "{\"webhook_url\":\"u\"}\v", rule: object},
		{body: "{\"webhook_url\":\"a\nb\"}", rule: object},
		{body: "{\"webhook_url\":\"a\x00b\"}", rule: object},
		{body: `{"webhook_url":"\x41"}`, rule: object},
		{body: `{"webhook_url":"\u12"}`, rule: object},
		{body: `{"webhook_url":"\u12G4"}`, rule: object},
		{body: "{\"webhook_url\":\"\\u\x11111\"}", rule: object},
		{body: `{"webhook_url":"\U0041"}`, rule: object},
		{body: `{"webhook_url":"\"}`, rule: object},
		{body: "{/**/\"webhook_url\":\"u\"}", rule: object},

		{body: `{"endpoint_id":null,"webhook_url":"u"}`, rule: notString},
		{body: `{"endpoint_id":1,"webhook_url":"u"}`, rule: notString},
		{body: `{"endpoint_id":true,"webhook_url":"u"}`, rule: notString},
		{body: `{"endpoint_id":["e"],"webhook_url":"u"}`, rule: notString},
		{body: `{"endpoint_id":{},"webhook_url":"u"}`, rule: notString},
		{body: `{"webhook_url":null}`, rule: notString},

		{body: `{}`, rule: urlNeeded},
		{body: `{"endpoint_id":"e1"}`, rule: urlNeeded},

		{body: `{"endpoint_id":"e1","endpoint_id":"e1","webhook_url":"u"}`, rule: repeated},
		{body: `{"webhook_url":"u","webhook_url":"v"}`, rule: repeated},

		{body: `{"moc_id":"e1","webhook_url":"u"}`, rule: unknown},
		{body: `{"Endpoint_id":"e1","webhook_url":"u"}`, rule: unknown},
		{body: `{"endpointId":"e1","webhook_url":"u"}`, rule: unknown},
		{body: `{"endpoint_id ":"e1","webhook_url":"u"}`, rule: unknown},
		{body: `{"":"e1","webhook_url":"u"}`, rule: unknown},
		{body: `{"endpoint\u005fid":"e1","webhook_url":"u"}`, rule: unknown},
		{body: "{\"webhoo\u212a_url\":\"u\"}", rule: unknown},
		{body: `{"webhook_url":"u","x":null}`, rule: unknown},

		{body: "\ufeff{\"webhook_url\":\"u\"}", rule: utf8Rule},
		{body: "{\"webhook_url\":\"\xff\"}", rule: utf8Rule},
		{body: "{\"webhook_url\":\"\xed\xa0\x80\"}", rule: utf8Rule},
		{body: "{\"webhook_url\":\"\xc0\xaf\"}", rule: utf8Rule},

		{body: `{"webhook_url":"\ud800"}`, rule: surrogate},
		{body: `{"webhook_url":"\udc00"}`, rule: surrogate},
		{body: `{"webhook_url":"\ud83dx"}`, rule: surrogate},
		{body: `{"webhook_url":"\ud83d\u0041"}`, rule: surrogate},
		{body: `{"webhook_url":"\ude00\ud83d"}`, rule: surrogate},
	}
	for _, tt := range tests {
		got, rule := webhookcfg.DecodeSet([]byte(tt.body), "endpoint_id")
		if rule != tt.rule {
			t.Errorf("DecodeSet(%q): rule %q, want %q", tt.body, rule, tt.rule)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("DecodeSet(%q): -want +got:\n%s", tt.body, diff)
		}
	}
}

func TestDecodeSetOfVariant(t *testing.T) {
	body, rule := webhookcfg.DecodeSet([]byte(`{"moc_id":"m1","webhook_url":"u"}`), "moc_id")
	if want := (webhookcfg.SetBody{Entity: "m1", HasEntity: true, URL: "u"}); body != want || rule != "" {
		t.Errorf("got %+v and rule %q, want %+v", body, rule, want)
	}
	if _, rule := webhookcfg.DecodeSet([]byte(`{"endpoint_id":"m1","webhook_url":"u"}`), "moc_id"); rule == "" {
		t.Error("the key of the other form was taken")
	}
}

// FuzzDecodeSet holds the decoder to a second one, made of the tokens of
// encoding/json and checks of what that lets through.
func FuzzDecodeSet(f *testing.F) {
	for _, seed := range []string{
		`{"endpoint_id":"e1","webhook_url":"https://example.com/x"}`,
		`{"webhook_url":"\ud83d\ude00\n\\"}`,
		`{"endpoint_id":"a","Endpoint_Id":null}`,
		`{"webhook_url":"\ud800"}`, `{"webhook_url":"u"}{}`, "\ufeff{}", `null`, `{"webhook_url":"\`, `{"a":[[{}]]}`,
		" {\"webhook_url\" : \"\xff\"}", `{"webhook_url":"\u0000","endpoint_id":""}`, `{"endpoint\u005fid":"e"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, rule := webhookcfg.DecodeSet(bytes.Clone(data), "endpoint_id")
		want, err := referenceDecode(data)
		if (rule == "") != (err == nil) {
			t.Fatalf("%q: rule %q, reference error %v", data, rule, err)
		}
		if err == nil && got != want {
			t.Fatalf("%q: got %+v, want %+v", data, got, want)
		}
	})
}

func referenceDecode(data []byte) (body webhookcfg.SetBody, err error) {
	errRefused := errors.New("refused")
	if !utf8.Valid(data) || !json.Valid(data) {
		return body, errRefused
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return body, errRefused
	}
	seen := map[string]string{}
	for dec.More() {
		key, rawKey, err := referenceString(dec, data)
		if err != nil || rawKey != `"`+key+`"` || key != "endpoint_id" && key != "webhook_url" {
			return body, errRefused
		}
		if _, repeated := seen[key]; repeated {
			return body, errRefused
		}
		if seen[key], _, err = referenceString(dec, data); err != nil {
			return body, errRefused
		}
	}
	url, hasURL := seen["webhook_url"]
	entity, hasEntity := seen["endpoint_id"]
	if !hasURL {
		return body, errRefused
	}
	return webhookcfg.SetBody{Entity: entity, HasEntity: hasEntity, URL: url}, nil
}

// referenceString reads a string token and its spelling. It refuses a
// replacement character that the spelling does not hold: encoding/json made it of
// an unpaired surrogate.
func referenceString(dec *json.Decoder, data []byte) (text, spelling string, err error) {
	from := dec.InputOffset()
	token, err := dec.Token()
	if err != nil {
		return "", "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", "", io.ErrUnexpectedEOF
	}
	spelling = strings.TrimLeft(string(data[from:dec.InputOffset()]), " \t\r\n,:")
	written := strings.Count(spelling, "\uFFFD") + strings.Count(strings.ToLower(spelling), `\ufffd`)
	if strings.Count(text, "\uFFFD") > written {
		return "", "", io.ErrUnexpectedEOF
	}
	return text, spelling, nil
}
