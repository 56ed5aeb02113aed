package etcdstore

import (
	"cmp"
	"testing"
)

// FuzzKeys: no two names share a key, whatever bytes they are of, and etcd's order
// of the keys is the byte order of the entities.
func FuzzKeys(f *testing.F) {
	names := []string{"a", "b", "a/b", "/", "//", "%", "%2F", "%2f", "\x00", "a\x00", "a\x01", "\xff", "a\xff\xff", " ", "é", "+", "."}
	for _, client := range names {
		for n, entity := range names {
			f.Add(client, entity, names[len(names)-1-n], client+entity)
		}
	}
	f.Fuzz(func(t *testing.T, client, entity, otherClient, otherEntity string) {
		const k = keys("prefix/")
		if client == "" || entity == "" || otherClient == "" || otherEntity == "" {
			return
		}
		key := k.override(client, entity)
		if c, e, ok := k.parse([]byte(key)); !ok || c != client || e != entity {
			t.Errorf("the key of %q / %q is that of %q / %q, %t", client, entity, c, e, ok)
		}
		if c, e, ok := k.parse([]byte(k.base(client))); !ok || c != client || e != "" {
			t.Errorf("the key of %q is that of %q / %q, %t", client, c, e, ok)
		}
		if cmp.Compare(key, k.override(client, otherEntity)) != cmp.Compare(entity, otherEntity) {
			t.Errorf("the keys of %q and %q are in another order", entity, otherEntity)
		}
		inside := k.after(client, "") <= key && key < k.end(client)
		if !inside || key < k.base(client) || k.after(client, entity) <= key {
			t.Errorf("%q / %q is outside of what is listed", client, entity)
		}
		for _, other := range []string{k.base(otherClient), k.override(otherClient, otherEntity)} {
			if client != otherClient && k.base(client) <= other && other < k.end(client) {
				t.Errorf("%q of %q is among the keys of %q", other, otherClient, client)
			}
		}
	})
}

func TestForeignKeys(t *testing.T) {
	const k = keys("prefix/")
	for _, key := range []string{"", "prefix", "prefix/", "prefix/acme", "prefix//e1", "prefix/%2f/e1", "prefix/%41/e1", "prefix/%/e1", "other/acme/e1"} {
		if client, entity, ok := k.parse([]byte(key)); ok {
			t.Errorf("%q is the key of %q / %q", key, client, entity)
		}
	}
}
