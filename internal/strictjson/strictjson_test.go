package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/go-webhookcfg/internal/strictjson"
)

// decode returns the fields "id" and "url" of data.
func decode(data []byte) (id, url strictjson.Field, err error) {
	fields := []strictjson.Field{{Key: "id"}, {Key: "url"}}
	err = strictjson.Decode(data, fields)
	return fields[0], fields[1], err
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		data    string
		id, url string // "-" for absent
	}{
		{`{}`, "-", "-"},
		{`{ }`, "-", "-"},
		{`{"url":"u"}`, "-", "u"},
		{`{"id":"e1","url":"u"}`, "e1", "u"},
		{`{"url":"u","id":"e1"}`, "e1", "u"},
		{" \t\r\n{ \"id\" :\n\"e1\" , \"url\":\t\"u\" } \r\n", "e1", "u"},
		{`{"id":"","url":""}`, "", ""},
		{`{"id":"\u0065\u00311","url":"a\"\\\/\b\f\n\r\tz"}`, "e11", "a\"\\/\b\f\n\r\tz"},
		{`{"url":"\ud83d\ude00 \uFFFD \u00e9 é"}`, "-", "😀 \uFFFD é é"},
		{`{"url":"\uD83D\uDE00\u0000"}`, "-", "😀\x00"},
		{`{"i\u0064":"e1","\u0075\u0072\u006C":"u"}`, "e1", "u"},
		{`{"url":"\ufeff"}`, "-", "\ufeff"},
	} {
		id, url, err := decode([]byte(tt.data))
		for _, f := range []struct {
			got  strictjson.Field
			want string
		}{{id, tt.id}, {url, tt.url}} {
			if want := (strictjson.Field{Key: f.got.Key, Value: strings.TrimPrefix(f.want, "-"), Present: f.want != "-"}); f.got != want || err != nil {
				t.Errorf("%s: got %+v and %v, want %+v", tt.data, f.got, err, want)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for want, all := range map[error][]string{
		strictjson.ErrSyntax: {
			``, ` `, `null`, `"x"`, `[]`, `1`, `[{"url":"u"}]`,
			`{`, `{"url"`, `{"url":`, `{"url": `, `{"url":"u`, `{"url":"u"`, `{"url":"u",`, `{"url":"u",}`, `{,"url":"u"}`, `{,}`,
			`{"url" "u"}`, `{"url":"u" "id":"e"}`, `{"url":"u";"id":"e"}`, `{url:"u"}`, `{'url':'u'}`, `{null:"u"}`,
			`{"url":"u"}{}`, `{"url":"u"}x`, `{"url":"u"} null`, `{"url":"u"},`, "{\"url\":\"u\"}\x00", "{\"url\":\"u\"}\v", "{\"url\":\"u\"}\u00a0",
			"{\"url\":\"a\nb\"}", "{\"url\":\"a\x00b\"}", "{\"url\":\"a\tb\"}",
			`{"url":"\x41"}`, `{"url":"\u12"}`, `{"url":"\u12G4"}`, `{"url":"\u+123"}`, `{"url":"\u1_23"}`, "{\"url\":\"\\u\x11111\"}", `{"url":"\U0041"}`, `{"url":"\"}`, `{"url":"\`,
			"{/**/\"url\":\"u\"}", `{"id":"e1","url":"u"]`,
		},
		strictjson.ErrNotString:  {`{"id":null,"url":"u"}`, `{"id":1}`, `{"id":true}`, `{"id":["e"]}`, `{"id":{}}`, `{"id":}`, `{"id":'e'}`},
		strictjson.ErrRepeated:   {`{"id":"e1","id":"e1"}`, `{"id":"e1","url":"u","id":"e2"}`, `{"id":"","id":null}`, `{"id":"e1","i\u0064":"e1"}`, `{"\u0069d":"e1","id":"e1"}`},
		strictjson.ErrUnknownKey: {`{"":"e"}`, `{"ID":"e"}`, `{"Id":"e"}`, `{"id ":"e"}`, `{" id":"e"}`, `{"i":"e"}`, `{"id\u0000":"e"}`, `{"\u0049d":"e"}`, `{"i\\u0064":"e"}`, "{\"\u0131d\":\"e\"}", `{"x":null}`, `{"id":"e","x":[]}`},
		strictjson.ErrEncoding:   {"\ufeff{}", "\ufeff", "{\"url\":\"\xff\"}", "{\"url\":\"\xed\xa0\x80\"}", "{\"url\":\"\xc0\xaf\"}", "{\"\xff\":1}", "{}\x80"},
		strictjson.ErrSurrogate:  {`{"url":"\ud800"}`, `{"url":"\udc00"}`, `{"url":"\ud83dx"}`, `{"url":"\ud83d\u0041"}`, `{"url":"\ud83d\n"}`, `{"url":"\ude00\ud83d"}`, `{"id\ud800":"e"}`},
	} {
		for _, data := range all {
			if _, _, err := decode([]byte(data)); !errors.Is(err, want) {
				t.Errorf("%q: got %v, want %v", data, err, want)
			}
		}
	}
}

// TestDecodeCopies: the values do not share the memory of the data, which the caller
// may use again.
func TestDecodeCopies(t *testing.T) {
	data := []byte(`{"id":"e1","url":"\u0075"}`)
	id, url, err := decode(data)
	clear(data)
	if id.Value != "e1" || url.Value != "u" || err != nil {
		t.Errorf("got %+v, %+v and %v", id, url, err)
	}
}

// FuzzDecode compares with a decoder of the tokens of encoding/json, with checks of
// what that accepts beyond them.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"e1","url":"https://example.com/x"}`, `{"url":"\ud83d\ude00\n\\"}`, `{"id":"a","Id":null}`, `{"id":"a","id":"b"}`,
		`{"url":"\ud800"}`, `{"url":"u"}{}`, "\ufeff{}", `null`, `{"url":"\`, `{"a":[[{}]]}`, " {\"url\" : \"\xff\"}",
		`{"url":"\u0000","id":""}`, `{"i\u0064":"e"}`, `{"id":"a","\u0069d":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, url, err := decode(bytes.Clone(data))
		want, wantErr := reference(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: got %v, the reference %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		for _, field := range []strictjson.Field{id, url} {
			if value, present := want[field.Key]; field.Value != value || field.Present != present {
				t.Fatalf("%q: got %+v, the reference %q", data, field, want)
			}
		}
	})
}

var errRefused = errors.New("refused")

func reference(data []byte) (map[string]string, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errRefused
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errRefused
	}
	seen := map[string]string{}
	for dec.More() {
		key, err := referenceString(dec, data)
		if _, repeated := seen[key]; err != nil || repeated || key != "id" && key != "url" {
			return nil, errRefused
		}
		if seen[key], err = referenceString(dec, data); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// referenceString reads a string token. It refuses a replacement character that is
// not in the data: encoding/json substitutes it for an unpaired surrogate.
func referenceString(dec *json.Decoder, data []byte) (string, error) {
	from := dec.InputOffset()
	token, err := dec.Token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", io.ErrUnexpectedEOF
	}
	spelling := string(data[from:dec.InputOffset()])
	written := strings.Count(spelling, "\uFFFD") + strings.Count(strings.ToLower(spelling), `\ufffd`)
	if strings.Count(text, "\uFFFD") > written {
		return "", errRefused
	}
	return text, nil
}
