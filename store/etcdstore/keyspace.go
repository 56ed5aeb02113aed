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

// keys makes the keys of a store with this prefix.
//
// The key of an override is the key of the base and then the entity. The entity isn't
// escaped, so etcd sorts a client's overrides in byte order of their entities. The client is
// escaped, so it ends at the next slash.
type keys string

func (k keys) base(client string) string { return string(k) + url.PathEscape(client) + "/" }

func (k keys) override(client, entity string) string { return k.base(client) + entity }

// after returns the first key that can follow the key of an entity. For the entity "" it's
// the first key that an override can have.
func (k keys) after(client, entity string) string { return k.override(client, entity) + "\x00" }

// end returns the first key after all keys of the client.
func (k keys) end(client string) string { return clientv3.GetPrefixRangeEnd(k.base(client)) }

// parse is the inverse of override and, with the entity "", of base. ok is false for any
// other key.
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

// value is a decoded value. It has no URL if the base was unset, or the override is off.
type value struct {
	url   egress.URL
	since int64 // microseconds of Unix time
}

// Every value starts with version, the version of the format. We still read version 1, which
// has its time in seconds, but don't write it any more.
const (
	version        = "2"
	secondsVersion = "1"
)

// encode joins the version, the time, and the URL if there is one, with spaces. The URL comes
// last because it can contain any bytes.
func (v value) encode() string {
	head := version + " " + strconv.FormatInt(v.since, 10)
	if v.url.IsZero() {
		return head
	}
	return head + " " + v.url.Reveal()
}

// decode is the inverse of encode. It also reads version 1. Its errors wrap ErrDamaged.
func decode(data []byte) (value, error) {
	found, rest, _ := strings.Cut(string(data), " ")
	if found != version && found != secondsVersion {
		return value{}, fmt.Errorf("%w: not in format %s or %s, so damaged or written by a later version", ErrDamaged, version, secondsVersion)
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

// base is the base of a client. It's zero if the client never had one.
type base struct {
	value
	revision int64 // at which it was written
}

// newBase decodes the result of a get of a base's key.
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

// override returns the webhook that an override makes with this base. It's zero if the base
// was written later, or if the override is off and there's no base.
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
