package etcdstore

import (
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keys is the part of the keyspace that belongs to a store, named by its prefix.
//
// The key of an override is that of the base and the entity. The entity comes
// last, as it is, so that etcd has the overrides of a client in byte order of their
// entities. The client comes escaped, so that the slash after it tells where it ends.
type keys string

func (k keys) base(client string) string { return string(k) + url.PathEscape(client) + "/" }

func (k keys) override(client, entity string) string { return k.base(client) + entity }

// after is the first key that can come after the entity; after "" it is the first
// that an override can have.
func (k keys) after(client, entity string) string { return k.override(client, entity) + "\x00" }

// end is the first key that comes after all of the client.
func (k keys) end(client string) string { return clientv3.GetPrefixRangeEnd(k.base(client)) }

// parse is the inverse of base, with the entity "", and override. It is not ok for
// keys that neither of them returns.
func (k keys) parse(key []byte) (client, entity string, ok bool) {
	rest, ok := strings.CutPrefix(string(key), string(k))
	if !ok {
		return "", "", false
	}
	escaped, entity, ok := strings.Cut(rest, "/")
	if !ok {
		return "", "", false
	}
	client, err := url.PathUnescape(escaped)
	return client, entity, err == nil && client != "" && url.PathEscape(client) == escaped
}
