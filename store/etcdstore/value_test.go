package etcdstore

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// FuzzSetting: what is written is read, byte for byte.
func FuzzSetting(f *testing.F) {
	for _, url := range []string{"", "https://a.example", " ", "\xff\x00\n", "1 2 3", strings.Repeat("x", 1<<11)} {
		f.Add(url, time.Time{}.Unix())
		f.Add(url, int64(math.MaxInt64))
	}
	f.Fuzz(func(t *testing.T, url string, since int64) {
		want := setting{egress.NewURL(url), since}
		got, err := decode([]byte(want.encode()))
		if err != nil || !got.url.Equal(want.url) || got.since != since {
			t.Errorf("%q since %d is read as %q since %d: %v", url, since, got.url.Reveal(), got.since, err)
		}
	})
}

// FuzzDecode: a value that can be read is one that could have been written.
func FuzzDecode(f *testing.F) {
	for _, value := range damaged {
		f.Add(value)
	}
	f.Add("1 1767323045 https://a.example")
	f.Fuzz(func(t *testing.T, value string) {
		if s, err := decode([]byte(value)); err == nil && s.encode() != value {
			t.Errorf("%q is read as what is written %q", value, s.encode())
		}
	})
}

var damaged = []string{"", "1", "1 ", "2 5", "1 x", "1 +5", "1 05", "1  5", "1 5 ", " 1 5", "1 99999999999999999999", `{"v":1}`}

func TestDamaged(t *testing.T) {
	for _, value := range damaged {
		if _, err := decode([]byte(value)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", value, err)
		}
	}
	if _, err := decode([]byte("2 5 https://hooks.example.com/t0ken")); err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("the error is %v", err)
	}
}

// TestOverride has each of the cases that decide what an override is worth.
func TestOverride(t *testing.T) {
	none, url := setting{}, setting{egress.NewURL("https://a.example"), 5}
	for _, test := range []struct {
		name     string
		base     base
		override setting
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
