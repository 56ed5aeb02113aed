package etcdstore

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// keys is the part of the keyspace that belongs to a store, identified by its prefix.
//
// The key of an override is that of the base followed by the entity. The entity is
// stored unescaped, so that etcd sorts the overrides of a client in byte order of their
// entities. The client is escaped, so that it ends at the next slash.
type keys string

func (k keys) base(client string) string { return string(k) + url.PathEscape(client) + "/" }

func (k keys) override(client, entity string) string { return k.base(client) + entity }

// after returns the first key that can follow that of an entity; for the entity "" it is
// the first possible key of an override.
func (k keys) after(client, entity string) string { return k.override(client, entity) + "\x00" }

// end returns the first key after all keys of the client.
func (k keys) end(client string) string { return clientv3.GetPrefixRangeEnd(k.base(client)) }

// parse is the inverse of override and, with the entity "", of base. It is not ok for
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

// value is the decoded value of a key: a URL or, for a base that was unset and an
// override that is off, none.
type value struct {
	url   egress.URL
	since int64 // microseconds of Unix time
}

// version is the version of the format, with which every value starts. Values of version 1
// have their time in seconds; they are read, and no longer written.
const (
	version        = "2"
	secondsVersion = "1"
)

// encode returns the version, the time, and the URL if there is one, separated by
// spaces. The URL comes last, so that it may contain any bytes.
func (v value) encode() string {
	head := version + " " + strconv.FormatInt(v.since, 10)
	if v.url.IsZero() {
		return head
	}
	return head + " " + v.url.Reveal()
}

// decode is the inverse of encode, and reads values of version 1 too. Its errors wrap
// ErrDamaged.
func decode(data []byte) (value, error) {
	found, rest, _ := strings.Cut(string(data), " ")
	if found != version && found != secondsVersion {
		return value{}, fmt.Errorf("%w: neither of version %s nor of version %s", ErrDamaged, version, secondsVersion)
	}
	digits, url, more := strings.Cut(rest, " ")
	since, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(since, 10) != digits || more && url == "" {
		return value{}, fmt.Errorf("%w: malformed", ErrDamaged)
	}
	if found == secondsVersion {
		const micros = int64(time.Second / time.Microsecond)
		if since > math.MaxInt64/micros || since < math.MinInt64/micros {
			return value{}, fmt.Errorf("%w: malformed", ErrDamaged)
		}
		since *= micros
	}
	return value{url: egress.NewURL(url), since: since}, nil
}

// readValue decodes the value of a key. Its errors wrap ErrDamaged and name the key.
func readValue(kv *mvccpb.KeyValue) (value, error) {
	v, err := decode(kv.Value)
	if err != nil {
		err = fmt.Errorf("%w, key %q", err, kv.Key)
	}
	return v, err
}

func (v value) webhook(source webhookcfg.Source) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: v.url, Source: source, Since: time.UnixMicro(v.since).UTC()}
}

// base is the base of a client. The zero value is that of a client that never had one.
type base struct {
	value
	revision int64 // at which it was written
}

// newBase decodes the result of a get of the key of a base.
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

// override returns the effect of an override on top of the base: the zero Webhook if the
// base was written after it, or if it is off and there is no base.
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
