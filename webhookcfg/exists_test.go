package webhookcfg_test

import (
	"context"
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
