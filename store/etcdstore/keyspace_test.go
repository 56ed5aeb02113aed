package etcdstore

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// FuzzKeys: no two names share a key, even with odd bytes, and etcd sorts the keys in the
// byte order of the entities.
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

// FuzzValue: decoding gives back the value byte for byte.
func FuzzValue(f *testing.F) {
	for _, url := range []string{"", "https://a.example", " ", "\xff\x00\n", "1 2 3", strings.Repeat("x", 1<<11)} {
		f.Add(url, time.Time{}.UnixMicro())
		f.Add(url, int64(math.MaxInt64))
	}
	f.Fuzz(func(t *testing.T, url string, since int64) {
		want := value{egress.NewURL(url), since}
		got, err := decode([]byte(want.encode()))
		if err != nil || !got.url.Equal(want.url) || got.since != since {
			t.Errorf("%q since %d is read as %q since %d: %v", url, since, got.url.Reveal(), got.since, err)
		}
	})
}

// FuzzDecode: if a value can be decoded, encoding the result gives the value again, except
// for the version and the unit of the time.
func FuzzDecode(f *testing.F) {
	for _, value := range damaged {
		f.Add(value)
	}
	f.Add("1 1767323045 https://a.example")
	f.Add("2 1767323045000001 https://a.example")
	f.Fuzz(func(t *testing.T, value string) {
		s, err := decode([]byte(value))
		if err != nil {
			return
		}
		again := s.encode()
		if strings.HasPrefix(value, "1 ") {
			s.since /= 1e6
			again = "1" + s.encode()[1:]
		}
		if again != value {
			t.Errorf("%q is decoded as a value with the encoding %q", value, again)
		}
	})
}

var damaged = []string{"", "1", "1 ", "2", "3 5", "2 x", "2 05", "2 5 ", "1 9223372036855", "1 -9223372036855", "1 x", "1 +5", "1 05", "1  5", "1 5 ", " 1 5", "1 99999999999999999999", `{"v":1}`}

func TestDamaged(t *testing.T) {
	for _, value := range damaged {
		if _, err := decode([]byte(value)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, err := decode([]byte("3 5 https://hooks.example.com/t0ken")); err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("the error is %v", err)
	}
}

// TestVersion1: the store reads values with a time in seconds.
func TestVersion1(t *testing.T) {
	for text, want := range map[string]value{
		"1 1767323045 https://a.example": {egress.NewURL("https://a.example"), 1767323045_000000},
		"1 1767323047":                   {since: 1767323047_000000},
		"1 -62135596800":                 {since: time.Time{}.UnixMicro()},
		"2 1767323045000001 1 2":         {egress.NewURL("1 2"), 1767323045_000001},
	} {
		if got, err := decode([]byte(text)); err != nil || got.since != want.since || !got.url.Equal(want.url) {
			t.Errorf("%q is read as %q since %d: %v", text, got.url.Reveal(), got.since, err)
		}
	}
}

// TestOverride checks each combination of a base and an override.
func TestOverride(t *testing.T) {
	none, url := value{}, value{egress.NewURL("https://a.example"), 5}
	for _, test := range []struct {
		name     string
		base     base
		override value
		revision int64
		want     webhookcfg.Source
	}{
		{"a URL, no base ever", base{}, url, 1, webhookcfg.SourceOverride},
		{"a URL, newer than the base", base{url, 4}, url, 5, webhookcfg.SourceOverride},
		{"a URL, older than the base", base{url, 4}, url, 3, webhookcfg.SourceNone},
		{"a URL, newer than the unset", base{none, 4}, url, 5, webhookcfg.SourceOverride},
		{"a URL, older than the unset", base{none, 4}, url, 3, webhookcfg.SourceNone},
		{"off, newer than the base", base{url, 4}, none, 5, webhookcfg.SourceOff},
		{"off, older than the base", base{url, 4}, none, 3, webhookcfg.SourceNone},
		{"off, no base ever", base{}, none, 1, webhookcfg.SourceNone},
		{"off, newer than the unset", base{none, 4}, none, 5, webhookcfg.SourceNone},
	} {
		kv := &mvccpb.KeyValue{Value: []byte(test.override.encode()), ModRevision: test.revision}
		if got, err := test.base.override(kv); err != nil || got.Source != test.want {
			t.Errorf("%s: %s, want %s: %v", test.name, got.Source, test.want, err)
		}
	}
}
