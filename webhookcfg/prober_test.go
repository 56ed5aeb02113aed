package webhookcfg_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// names is a resolver without a network.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	address, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// TestDefaultProber runs the handler with the prober of egress: one description for
// every reason to be unreachable, and 429 with a wait for too many probes.
func TestDefaultProber(t *testing.T) {
	policy := &egress.Policy{
		AllowHTTP: true,
		Resolver:  names{"up.example.com": "93.184.215.14", "inside.example.com": "10.0.0.1"},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			return ours, nil
		},
	}
	prober, err := policy.Prober(&egress.ProberOptions{ClientProbesPerMinute: 4})
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Policy, o.Prober, o.ProbeMode = policy, prober, webhookcfg.ProbeEnforce
	address := serve(t, newHandler(t, newRecorder(), o))
	got := steps(t, address,
		"set e1 http://up.example.com/in", "set e1 http://inside.example.com/in", "set e1 http://nowhere.example.com/in", "set e1 https://up.example.com/in",
		"set e1 http://up.example.com/in", "other set e1 http://up.example.com/in", "get e1")
	want := []string{
		successBody, "400 webhook_unreachable", "400 webhook_unreachable", "400 webhook_unreachable",
		"429 too_many_requests", successBody, shown("endpoint_id", "e1", "http://up.example.com/in", "override"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
