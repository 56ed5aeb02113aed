package deliver_test

import (
	"mime"
	"net/http"
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
		if err := m.Check(); err != nil {
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
		err := m.Check()
		if err == nil {
			t.Errorf("%+v is accepted", m)
		} else if strings.Contains(err.Error(), "Secret") {
			t.Errorf("%+v: the error has a part of the message: %v", m, err)
		}
	}
}

// FuzzMessage: what a message adds to a request is one field each, and no other.
func FuzzMessage(f *testing.F) {
	f.Add("msg_1", "application/json")
	f.Add("a.b", "text/plain; charset=utf-8")
	f.Add("a\r\nb", "text/plain\r\nX: y")
	f.Fuzz(func(t *testing.T, id, contentType string) {
		m := deliver.Message{ID: id, ContentType: contentType}
		if m.Check() != nil {
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
