package deliver_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

func TestMessage(t *testing.T) {
	for _, m := range []deliver.Message{
		{ID: "a"},
		{ID: "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"},
		{ID: "019c2b0e-7f3a-7cc0-98c4-dc0c0c07398f"},
		{ID: strings.Repeat("Z", 64)},
		{ID: "a", ContentType: "application/json"},
		{ID: "a", ContentType: "application/cloudevents+json; charset=utf-8"},
		{ID: "a", ContentType: `text/plain; x="a b"`},
		{ID: "a", ContentType: "text/" + strings.Repeat("x", 251)},
	} {
		if err := m.Validate(); err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, m := range []deliver.Message{
		{},
		{ID: strings.Repeat("Z", 65)},
		{ID: "a.b"},
		{ID: "a b"},
		{ID: "a\r\nX-Secret: 1"},
		{ID: "ä"},
		{ID: "a\x00"},
		{ID: "a", ContentType: "json"},
		{ID: "a", ContentType: " text/plain"},
		{ID: "a", ContentType: "text/plain "},
		{ID: "a", ContentType: "text/plain\r\nX-Secret: 1"},
		{ID: "a", ContentType: "text/plain\n"},
		{ID: "a", ContentType: "text/plain; x=\"\x7f\""},
		{ID: "a", ContentType: "text/plain; x=\"ä\""},
		{ID: "a", ContentType: "text/plain, text/html"},
		{ID: "a", ContentType: "text/" + strings.Repeat("x", 252)},
	} {
		err := m.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", m)
		} else if strings.Contains(err.Error(), "Secret") {
			t.Errorf("%+v: the error has a part of the message: %v", m, err)
		}
	}
}

// TestMaxBody: a body that is too large isn't sent, and the error says both sizes.
func TestMaxBody(t *testing.T) {
	r := newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, r.URL)
	for limit, opts := range map[int]*deliver.Options{256 << 10: nil, 10: {MaxBody: 10}} {
		s := newSender(t, st, keyring{deliver.GenerateKey()}, opts)
		if got := s.MaxBody(); got != limit {
			t.Errorf("MaxBody = %d, want %d", got, limit)
		}
		m := deliver.Message{ID: "m", Body: make([]byte, limit)}
		check(t, "as large as allowed", s.Send(t.Context(), "acme", "e1", m), deliver.Delivered, "")
		m.Body = make([]byte, limit+1)
		result := s.Send(t.Context(), "acme", "e1", m)
		check(t, "too large", result, deliver.Undeliverable, deliver.ReasonMessage)
		if want := fmt.Sprintf("has %d bytes, and Options.MaxBody is %d", limit+1, limit); !strings.Contains(result.Err.Error(), want) {
			t.Errorf("error %v, want %q in it", result.Err, want)
		}
		check(t, "too large a test", s.Test(t.Context(), "acme", "", m), deliver.Undeliverable, deliver.ReasonMessage)
	}
	if n := len(r.received()); n != 2 {
		t.Errorf("%d requests", n)
	}
	if _, err := deliver.New(st, keyring{}, &deliver.Options{MaxBody: -1}); err == nil {
		t.Error("a negative MaxBody is accepted")
	}
}

// TestMessageJSON: the stored form stays, and what was stored without names for the fields
// can be read.
func TestMessageJSON(t *testing.T) {
	for _, tt := range []struct {
		message deliver.Message
		want    string
		before  string
	}{
		{
			deliver.Message{ID: "m1", Body: []byte(`{"version":7}`)},
			`{"id":"m1","body":"eyJ2ZXJzaW9uIjo3fQ=="}`,
			`{"ID":"m1","Body":"eyJ2ZXJzaW9uIjo3fQ==","ContentType":""}`,
		},
		{
			deliver.Message{ID: "m2", Body: []byte{0xff}, ContentType: "text/plain"},
			`{"id":"m2","body":"/w==","contentType":"text/plain"}`,
			`{"ID":"m2","Body":"/w==","ContentType":"text/plain"}`,
		},
		{deliver.Message{}, `{"id":"","body":null}`, `{"ID":"","Body":null,"ContentType":""}`},
	} {
		got, err := json.Marshal(tt.message)
		if err != nil || string(got) != tt.want {
			t.Errorf("%+v is stored as %s, %v; want %s", tt.message, got, err, tt.want)
		}
		for _, text := range []string{tt.want, tt.before} {
			var m deliver.Message
			if err := json.Unmarshal([]byte(text), &m); err != nil || !reflect.DeepEqual(m, tt.message) {
				t.Errorf("%s is read as %+v, %v; want %+v", text, m, err, tt.message)
			}
		}
	}
}

// TestMessageID: an ID belongs to its parts, in every version of this package.
func TestMessageID(t *testing.T) {
	seen := make(map[string][]string)
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{"acme", "e1", "7"}, "msg_d0ce899a403d54507ecc67db5d167037"},
		{[]string{"acme", "e17"}, "msg_127abc830b957747866134f4ac4e2602"},
		{[]string{"acmee1", "7"}, "msg_2a427b7ef1ffddfb7c75beabb51cb842"},
		{[]string{"acme", "", "e17"}, "msg_0501dcd3659a3ce95101e411ae68b9ea"},
		{[]string{""}, "msg_af5570f5a1810b7af78caf4bc70a660f"},
		{nil, "msg_e3b0c44298fc1c149afbf4c8996fb924"},
	} {
		got := deliver.MessageID(tt.parts...)
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.parts, got, tt.want)
		}
		if err := (deliver.Message{ID: got}).Validate(); err != nil {
			t.Errorf("%s: %v", got, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q share an ID", tt.parts, other)
		}
		seen[got] = tt.parts
	}
}

// FuzzMessage: what a message adds to a request is one field each, and no other.
func FuzzMessage(f *testing.F) {
	f.Add("msg_1", "application/json")
	f.Add("a.b", "text/plain; charset=utf-8")
	f.Add("a\r\nb", "text/plain\r\nX: y")
	f.Fuzz(func(t *testing.T, id, contentType string) {
		m := deliver.Message{ID: id, ContentType: contentType}
		if m.Validate() != nil {
			return
		}
		if len(id) > 64 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			t.Errorf("ID %q", id)
		}
		header := http.Header{"Webhook-Id": {id}, "Content-Type": {contentType}}
		var text strings.Builder
		if err := header.Write(&text); err != nil {
			t.Fatal(err)
		}
		if want := "Content-Type: " + contentType + "\r\nWebhook-Id: " + id + "\r\n"; text.String() != want {
			t.Errorf("header %q, want %q", text.String(), want)
		}
		if contentType != "" {
			if _, _, err := mime.ParseMediaType(contentType); err != nil {
				t.Errorf("content type %q: %v", contentType, err)
			}
		}
	})
}
