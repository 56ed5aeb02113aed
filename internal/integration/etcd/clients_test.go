package etcd_test

import (
	"fmt"
	"slices"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
)

// listsClients walks over clients. Some pages end within a client's keys, and some keys
// aren't the store's.
func listsClients(t *testing.T, c *etcdcluster.Cluster) {
	client, o := c.Client(t), newOptions()
	st := openOn(t, client, o)
	want := []string{"a", "a!", "a b", "a/b", "acme", "acme-eu", "acme0", "b", "ä", "\xff"}
	for n, name := range want {
		for m := range n * n {
			hooktest.Apply(t, st, hooktest.Set(name, fmt.Sprint("e", m), m))
		}
		if n%2 == 0 {
			hooktest.Apply(t, st, hooktest.SetAll(name, n))
		}
	}
	for n := range 1200 {
		if _, err := client.Put(t.Context(), fmt.Sprint(o.Prefix, "A foreign key ", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for _, limit := range []int{1, 2, 3, 7, 50, 1000, 5000} {
		var got []string
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, err := st.ListClients(t.Context(), cursor, limit)
			if err != nil || len(page.Clients) > limit {
				t.Fatalf("%d clients, limit %d: %v", len(page.Clients), limit, err)
			}
			got, cursor = append(got, page.Clients...), page.Next
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}
