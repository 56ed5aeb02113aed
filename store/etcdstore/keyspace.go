package etcdstore

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
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

// value is what a key holds: a URL or, for a base that was unset and an
// override that says off, none.
type value struct {
	url   egress.URL
	since int64 // seconds of Unix time
}

// version begins every value. A package that writes others begins them otherwise.
const version = "1"

// encode returns the version, the time, and the URL if there is one, separated by
// spaces. The URL comes last, so that any bytes may be in it.
func (v value) encode() string {
	head := version + " " + strconv.FormatInt(v.since, 10)
	if v.url.IsZero() {
		return head
	}
	return head + " " + v.url.Reveal()
}

// decode is the inverse of encode. Its errors wrap ErrDamaged.
func decode(data []byte) (value, error) {
	found, rest, _ := strings.Cut(string(data), " ")
	if found != version {
		return value{}, fmt.Errorf("%w: a value is not of version %s", ErrDamaged, version)
	}
	digits, url, more := strings.Cut(rest, " ")
	since, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(since, 10) != digits || more && url == "" {
		return value{}, fmt.Errorf("%w: a value is malformed", ErrDamaged)
	}
	return value{url: egress.NewURL(url), since: since}, nil
}

// readValue decodes the value of a key.
func readValue(kv *mvccpb.KeyValue) (value, error) {
	v, err := decode(kv.Value)
	if err != nil {
		err = fmt.Errorf("%w, that of the key %q", err, kv.Key)
	}
	return v, err
}

func (v value) webhook(source webhookcfg.Source) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: v.url, Source: source, Since: time.Unix(v.since, 0).UTC()}
}

// base is what is known of the base of a client. The zero value is that of a
// client that has none and never had.
type base struct {
	value
	revision int64 // at which it was written
}

// newBase takes the answer to a get of the key of a base.
func newBase(kvs []*mvccpb.KeyValue) (base, error) {
	if len(kvs) == 0 {
		return base{}, nil
	}
	v, err := readValue(kvs[0])
	return base{v, kvs[0].ModRevision}, err
}

func (b base) webhook() webhookcfg.Webhook {
	if b.url.IsZero() {
		return webhookcfg.Webhook{}
	}
	return b.value.webhook(webhookcfg.SourceBase)
}

// override returns what an override is worth beside the base: the zero Webhook if
// the base was written after it, or if it says off and there is no base.
func (b base) override(kv *mvccpb.KeyValue) (webhookcfg.Webhook, error) {
	if kv.ModRevision <= b.revision {
		return webhookcfg.Webhook{}, nil
	}
	v, err := readValue(kv)
	switch {
	case err != nil:
		return webhookcfg.Webhook{}, err
	case !v.url.IsZero():
		return v.webhook(webhookcfg.SourceOverride), nil
	case !b.url.IsZero():
		return v.webhook(webhookcfg.SourceOff), nil
	}
	return webhookcfg.Webhook{}, nil
}
