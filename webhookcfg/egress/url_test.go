package egress_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const secretURL = "https://user:secret@hooks.example.com:8443/secret/path?token=secret#secret"

const shownURL = "https://hooks.example.com:8443"

func TestURLString(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		secretURL:                            shownURL,
		"https://example.com":                "https://example.com",
		"HTTP://Example.com/secret":          "HTTP://Example.com",
		"https://example.com?secret":         "https://example.com",
		"https://example.com#secret":         "https://example.com",
		`https://example.com\secret`:         "https://example.com",
		"https://secret@example.com/":        "https://example.com",
		"https://a@secret@example.com/":      "https://example.com",
		"https://93.184.216.34:80/secret":    "https://93.184.216.34:80",
		"https://[2606:2800::1]:8443/secret": "https://[2606:2800::1]:8443",
		"https://[2606:2800::1]/secret":      "https://[2606:2800::1]",

		"secret":                               "redacted",
		"secret://example.com/":                "redacted",
		"https:secret":                         "redacted",
		"https:///secret":                      "redacted",
		"https://user:sec/ret@example.com/":    "redacted",
		"https://user:sec?ret@example.com/":    "redacted",
		"https://example.com:secret/":          "redacted",
		"https://example.com;secret/":          "redacted",
		"https://[secret]/":                    "redacted",
		"https://[fe80::1%25secret]/":          "redacted",
		"https://[::1]secret/":                 "redacted",
		"https://exa\nmple.com/":               "redacted",
		"https://exämple.com/":                 "redacted",
		"https://" + repeat("a", 300) + ".com": "redacted",
	} {
		if got := egress.NewURL(text).String(); got != want {
			t.Errorf("NewURL(%q) prints as %q, want %q", text, got, want)
		}
	}
}

// holder has a URL in every position that fmt formats differently.
type holder struct {
	Exported   egress.URL
	unexported egress.URL
	pointer    *egress.URL
	list       []egress.URL
	array      [1]egress.URL
	byName     map[string]egress.URL
	any        any
	nested     struct{ inner struct{ url egress.URL } }
}

func newHolder(u egress.URL) holder {
	h := holder{
		Exported: u, unexported: u, pointer: &u, any: u,
		list: []egress.URL{u}, array: [1]egress.URL{u}, byName: map[string]egress.URL{"u": u},
	}
	h.nested.inner.url = u
	return h
}

func TestURLIsRedactedInAllFormats(t *testing.T) {
	u := egress.NewURL(secretURL)
	h := newHolder(u)
	values := []any{u, &u, []egress.URL{u}, []*egress.URL{&u}, map[string]egress.URL{"u": u}, h, &h, []holder{h}, error(urlError{u})}
	for _, value := range values {
		text := hooktest.Prints(value)
		if strings.Contains(text, "secret") || strings.Contains(text, hexSecret) {
			t.Errorf("%T: %s", value, text)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb, u); got != shownURL {
			t.Errorf("%s prints %q, want %q", verb, got, shownURL)
		}
	}
}

// envelope is a value to encode.
type envelope struct{ U egress.URL }

const hexSecret = "736563726574"

// urlError is an error of a host with a URL in it.
type urlError struct{ url egress.URL }

func (e urlError) Error() string { return fmt.Sprint("no response from ", e.url) }

func TestURLIsRedactedInLogsAndEncodings(t *testing.T) {
	u := egress.NewURL(secretURL)
	h := newHolder(u)
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler).With("with", u).WithGroup("group")
		log.Info(u.String(), "url", u, "pointer", &u, "list", []egress.URL{u}, "holder", h, "to holder", &h,
			slog.Group("inner", "url", u), "error", urlError{u})
	}
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "xml": xml.Marshal} {
		for _, value := range []any{u, &u, []egress.URL{u}, envelope{u}} {
			text, err := marshal(value)
			if err != nil {
				t.Errorf("%s of %T: %v", name, value, err)
			}
			out.Write(text)
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Errorf("a secret in\n%s", out.String())
	}
	if n := strings.Count(out.String(), shownURL); n < 18 {
		t.Errorf("%d times %s in\n%s", n, shownURL, out.String())
	}
}

func TestURLReveal(t *testing.T) {
	for _, text := range []string{"", secretURL, "not a URL\x00\xff"} {
		u := egress.NewURL(text)
		if got := u.Reveal(); got != text {
			t.Errorf("NewURL(%q) reveals %q", text, got)
		}
		if u.IsZero() != (text == "") {
			t.Errorf("NewURL(%q).IsZero() = %v", text, u.IsZero())
		}
	}
}

func TestURLEqual(t *testing.T) {
	var zero egress.URL
	one, same := egress.NewURL(secretURL), egress.NewURL(strings.Clone(secretURL))
	other := egress.NewURL(secretURL + "x")
	if !one.Equal(same) || !one.Equal(one) || one.Equal(other) || one.Equal(zero) || !zero.Equal(egress.NewURL("")) {
		t.Error("Equal does not compare the texts")
	}
	if reflect.TypeFor[egress.URL]().Comparable() {
		t.Error("URLs can be compared with ==, which compares pointers")
	}
}

// TestOrigin: URLs of one server have one origin, and others have another.
func TestOrigin(t *testing.T) {
	for _, same := range [][]string{
		{"https://example.com/a", "https://example.com:443/b", "HTTPS://EXAMPLE.com?c"},
		{"http://example.com", "http://example.com:80"},
		{"https://example.com:8443/", "https://Example.Com:8443/x"},
		{
			"https://[2001:DB8::1]/", "https://[2001:db8::1]:443/", "https://[2001:db8:0::0:1]/", "https://[2001:0db8::0001]/",
			"https://[2001:db8:0:0:0:0:0:1]/", "https://[2001:db8::0.0.0.1]/",
		},
		{"https://192.0.2.1", "https://[::ffff:192.0.2.1]/", "https://[::ffff:c000:201]:443/"},
	} {
		for _, url := range same[1:] {
			if got, want := egress.NewURL(url).Origin(), egress.NewURL(same[0]).Origin(); got != want || got == "" {
				t.Errorf("%s: %q, want %q", url, got, want)
			}
		}
	}
	for _, different := range [][2]string{
		{"https://example.com", "http://example.com"},
		{"https://example.com", "https://example.com:8443"},
		{"https://example.com", "https://www.example.com"},
	} {
		if a, b := egress.NewURL(different[0]).Origin(), egress.NewURL(different[1]).Origin(); a == b {
			t.Errorf("%v: both are %s", different, a)
		}
	}
	for url, want := range map[string]string{
		"https://Example.com/hooks?token=abc": "https://example.com:443",
		"http://[2001:DB8::1]:8080":           "http://[2001:db8::1]:8080",
		"https://[::ffff:192.0.2.1]":          "https://192.0.2.1:443",
		"":                                    "",
		"example.com":                         "",
		"ftp://example.com":                   "",
		"https://user@example.com":            "",
		"https://example.com:0443":            "",
		"https://example.com\\@example.org":   "",
		"https://example.com./":               "",
		"https://192.0.2.01/":                 "",
		"https://[fe80::1%25eth0]/":           "",
	} {
		if got := egress.NewURL(url).Origin(); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
