package main

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^received at /in: {"type":"module.updated","version":7}
delivered to http://127\.0\.0\.1:[0-9]+\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// TestUnsigned: the receiver refuses anything that isn't signed with its key.
func TestUnsigned(t *testing.T) {
	var out bytes.Buffer
	receiver := receive(deliver.GenerateKey().Reveal(), &out)
	for _, signature := range []string{"", "v1,", "v1,AAAA v1,"} {
		r := httptest.NewRequest("POST", "/in", strings.NewReader("{}"))
		r.Header.Set("Webhook-Signature", signature)
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		if w.Code != 401 || out.Len() > 0 {
			t.Errorf("%q: got %d, %q", signature, w.Code, &out)
		}
	}
}
