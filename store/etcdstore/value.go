package etcdstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// setting is the value of a key: a URL or, for a base that was unset and an
// override that says off, none.
type setting struct {
	url   egress.URL
	since int64 // seconds of Unix time
}

// version begins every value. A package that writes others begins them otherwise.
const version = "1"

// encode returns the version, the time, and the URL if there is one, separated by
// spaces. The URL comes last, so that any bytes may be in it.
func (s setting) encode() string {
	head := version + " " + strconv.FormatInt(s.since, 10)
	if s.url.IsZero() {
		return head
	}
	return head + " " + s.url.Reveal()
}

// decode is the inverse of encode. Its errors wrap ErrDamaged.
func decode(value []byte) (setting, error) {
	found, rest, _ := strings.Cut(string(value), " ")
	if found != version {
		return setting{}, fmt.Errorf("%w: a value is not of version %s", ErrDamaged, version)
	}
	digits, url, more := strings.Cut(rest, " ")
	since, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(since, 10) != digits || more && url == "" {
		return setting{}, fmt.Errorf("%w: a value is malformed", ErrDamaged)
	}
	return setting{url: egress.NewURL(url), since: since}, nil
}

// read decodes the value of a key.
func read(kv *mvccpb.KeyValue) (setting, error) {
	s, err := decode(kv.Value)
	if err != nil {
		err = fmt.Errorf("%w, that of the key %q", err, kv.Key)
	}
	return s, err
}

func (s setting) webhook(source webhookcfg.Source) webhookcfg.Webhook {
	return webhookcfg.Webhook{URL: s.url, Source: source, Since: time.Unix(s.since, 0).UTC()}
}

// base is what is known of the base of a client. The zero value is that of a
// client that has none and never had.
type base struct {
	setting
	revision int64 // at which it was written
}

// newBase takes the answer to a get of the key of a base.
func newBase(kvs []*mvccpb.KeyValue) (base, error) {
	if len(kvs) == 0 {
		return base{}, nil
	}
	s, err := read(kvs[0])
	return base{s, kvs[0].ModRevision}, err
}

func (b base) webhook() webhookcfg.Webhook {
	if b.url.IsZero() {
		return webhookcfg.Webhook{}
	}
	return b.setting.webhook(webhookcfg.SourceBase)
}

// override returns what an override is worth beside the base: the zero Webhook if
// the base was written after it, or if it says off and there is no base.
func (b base) override(kv *mvccpb.KeyValue) (webhookcfg.Webhook, error) {
	if kv.ModRevision <= b.revision {
		return webhookcfg.Webhook{}, nil
	}
	s, err := read(kv)
	switch {
	case err != nil:
		return webhookcfg.Webhook{}, err
	case !s.url.IsZero():
		return s.webhook(webhookcfg.SourceOverride), nil
	case !b.url.IsZero():
		return s.webhook(webhookcfg.SourceOff), nil
	}
	return webhookcfg.Webhook{}, nil
}
