package main

import (
	"net/netip"
	"net/url"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func egressPairs() []pair {
	policy := new(egress.Policy)
	var pairs []pair
	for _, u := range []struct{ name, text string }{
		{"a name", "https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXX?token=t0ken"},
		{"an IPv4 address", "https://93.184.215.14:8443/services/T00000000/B00000000/XXXXXXXXXXXX"},
		{"an IPv6 address", "https://[2606:4700::6810:84e5]/services/T00000000/B00000000/XXXXXXXXXXXX"},
	} {
		parse := benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := url.Parse(u.text); err != nil {
					b.Fatal(err)
				}
			}
		})
		check := benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := policy.Check(u.text); err != nil {
					b.Fatal(err)
				}
			}
		})
		pairs = append(pairs, pair{"check of a URL with " + u.name + ", beside url.Parse alone", check, parse, 2})
	}
	addr := netip.MustParseAddr("2606:4700::6810:84e5")
	checkAddr := benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := policy.CheckAddr(addr); err != nil {
				b.Fatal(err)
			}
		}
	})
	parseURL := benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := url.Parse("https://[2606:4700::6810:84e5]/"); err != nil {
				b.Fatal(err)
			}
		}
	})
	return append(pairs, pair{"check of an address, beside url.Parse alone", checkAddr, parseURL, 2})
}
