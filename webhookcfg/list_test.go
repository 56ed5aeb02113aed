package webhookcfg_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// TestLongQuery: the query of a list is limited before it is parsed, which takes much more
// memory than the query has bytes.
func TestLongQuery(t *testing.T) {
	o := options()
	o.ValidEntityID = func(string) bool { return true }
	address := serve(t, newHandler(t, newRecorder(), o))
	after := "?after=" + strings.Repeat("x", 4096-len("after="))
	for query, want := range map[string]string{
		after:                             "",
		after + "x":                       "The query string is too long: send at most 4096 bytes",
		"?" + strings.Repeat("a&", 1<<17): "The query string is too long: send at most 4096 bytes",
	} {
		if a := raw(t, address, request("GET", configure+query, acme, "")); want == "" && a.Status != http.StatusOK || want != "" && a.Body != errorBody("invalid_request", want) {
			t.Errorf("%d bytes: got %v", len(query), a)
		}
	}
}

// TestStoreWithoutLister: lists are not served.
func TestStoreWithoutLister(t *testing.T) {
	address := serve(t, newHandler(t, struct{ webhookcfg.Store }{newRecorder()}, options()))
	want := []string{successBody, shown("endpoint_id", "e1", hookURL, "override"), "405 method_not_allowed"}
	if diff := cmp.Diff(want, steps(t, address, "set e1 "+hookURL, "get e1", "list")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
