package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// internalDNS stands for a DNS server in your network. With a real one, use a [net.Resolver].
type internalDNS struct{}

func (internalDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// The receivers are in your own network, with names, addresses and certificates of your own.
func ExamplePolicy() {
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, "called by", host)
	}))
	defer receiver.Close()
	_, port, _ := strings.Cut(receiver.Listener.Addr().String(), ":")
	authorities := x509.NewCertPool()
	authorities.AddCert(receiver.Certificate())

	policy := &egress.Policy{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		// Only your own DNS server knows the receivers' names.
		Resolver: internalDNS{},
		// This host has several addresses, and the receivers' firewalls accept only one.
		Dial: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).DialContext,
		// Your own certificate authority signs the receivers' certificates.
		RootCAs: authorities,
	}
	client, err := policy.Client(&egress.TransportOptions{
		// You send many requests at the same time to each of a few receivers.
		MaxIdleConnsPerHost: 64,
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Post("https://example.com:"+port+"/in", "application/json", strings.NewReader("{}"))
	if err != nil {
		log.Fatal(egress.RedactError(err))
	}
	body, _, err := egress.ReadBody(resp, 4096)
	fmt.Printf("%s%v\n", body, err)
	// Output:
	// called by 127.0.0.1
	// <nil>
}

// Your hosts only have IPv6, or have addresses that their interfaces don't show.
func ExamplePolicy_addresses() {
	policy := &egress.Policy{
		// Your hosts only have IPv6, and reach IPv4 receivers through NAT64 with DNS64.
		AllowNAT64: true,
		// A local route directs an address to this host that none of its interfaces has. Return
		// the addresses of its interfaces, too.
		LocalAddrs: func(context.Context) ([]netip.Addr, error) {
			addrs := []netip.Addr{netip.MustParseAddr("93.184.216.34")}
			interfaces, err := net.InterfaceAddrs()
			for _, a := range interfaces {
				if prefix, err := netip.ParsePrefix(a.String()); err == nil {
					addrs = append(addrs, prefix.Addr())
				}
			}
			return addrs, err
		},
	}
	for _, url := range []string{
		"https://[64:ff9b::5db8:d823]/", // 93.184.216.35
		"https://[64:ff9b::a00:1]/",     // 10.0.0.1
		"https://93.184.216.34/",
	} {
		fmt.Println("allowed:", policy.Check(url) == nil)
	}
	// Output:
	// allowed: true
	// allowed: false
	// allowed: false
}

// Probes are limited, so that clients can't use you to flood or scan other networks.
func ExampleProberOptions() {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()

	prober, err := egress.Development().Prober(&egress.ProberOptions{
		// Some receivers are slow, and take more than 5 seconds for a TLS handshake.
		Timeout: 8 * time.Second,
		// Your host is small, and each probe takes a connection and a file descriptor.
		MaxProbes: 20,
		// Your clients seldom set webhooks, and many probes are probably a scan.
		ClientProbesPerMinute: 2,
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		err := prober.Probe(context.Background(), "client-1", egress.NewURL(receiver.URL))
		_, limited := errors.AsType[*egress.LimitError](err)
		fmt.Println("limited:", limited)
	}
	// Output:
	// limited: false
	// limited: false
	// limited: true
}
