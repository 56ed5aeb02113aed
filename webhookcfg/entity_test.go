package webhookcfg_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntityExists(t *testing.T) {
	known := map[string]bool{"acme/e1": true, "acme/e2": true}
	o := options()
	o.EntityExists = func(_ context.Context, client, entity string) (bool, error) { return known[client+"/"+entity], nil }
	address := serve(t, newHandler(t, newRecorder(), o))

	got := steps(t, address, "set e1 "+hookURL, "set e9 "+hookURL, "unset e9", "get e9", "other set e1 "+hookURL, "set "+hookURL, "unset e9", "get e9")
	unknown := "404 unknown_entity"
	want := []string{successBody, unknown, unknown, unknown, unknown, successBody, unknown, unknown}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// The client can still read and unset the entry of an entity that no longer exists, even
	// if it's off. Without a base, the unset drops it.
	steps(t, address, "unset", "set "+hookURL, "set e2 "+hookURL)
	delete(known, "acme/e2")
	off := shown("endpoint_id", "e2", "", "off")
	got = steps(t, address, "set e2 "+hookURL, "get e2", "unset e2", "get e2", "unset e2", "get e2", "unset", "get e2", "unset e2")
	want = []string{unknown, shown("endpoint_id", "e2", hookURL, "override"), successBody, off, successBody, off, successBody, unknown, unknown}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
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
