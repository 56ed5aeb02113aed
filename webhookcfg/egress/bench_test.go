package egress_test

import (
	"net/netip"
	"net/url"
	"testing"
)

const (
	benchName = "https://hooks.receiver.example.com:8443/v1/notify/4f1c2d?token=abcdef0123456789"
	benchIPv4 = "https://93.184.216.34/v1/notify/4f1c2d?token=abcdef0123456789"
	benchIPv6 = "https://[2606:2800:220:1:248:1893:25c8:1946]/v1/notify?token=abcdef0123456789"
)

// BenchmarkCheck compares Check with url.Parse, which it calls.
func BenchmarkCheck(b *testing.B) {
	policy := newStrict()
	for _, bench := range []struct{ name, url string }{
		{"name", benchName}, {"ipv4", benchIPv4}, {"ipv6", benchIPv6},
	} {
		b.Run(bench.name+"/url.Parse", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parseURL(bench.url)
			}
		})
		b.Run(bench.name+"/Check", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := policy.Check(bench.url); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheckAddr checks addresses that match no entry of the table.
func BenchmarkCheckAddr(b *testing.B) {
	policy := newStrict()
	for _, bench := range []struct{ name, addr string }{
		{"ipv4", "93.184.216.34"}, {"ipv6", "2606:2800:220:1:248:1893:25c8:1946"},
	} {
		addr := netip.MustParseAddr(bench.addr)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := policy.CheckAddr(addr); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parseURL(text string) {
	if _, err := url.Parse(text); err != nil {
		panic(err)
	}
}
