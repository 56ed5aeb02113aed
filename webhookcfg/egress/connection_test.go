package egress_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func newClientWith(t *testing.T, policy *egress.Policy, opts *egress.TransportOptions) *http.Client {
	t.Helper()
	client, err := policy.Client(opts)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTransportOptions(t *testing.T) {
	for name, bad := range map[string]egress.TransportOptions{
		"MaxIdleConns":        {MaxIdleConns: -1},
		"MaxIdleConnsPerHost": {MaxIdleConnsPerHost: -1},
	} {
		if _, err := newStrict().Transport(&bad); err == nil {
			t.Errorf("Transport: negative %s gives no error", name)
		}
		if _, err := newStrict().Client(&bad); err == nil {
			t.Errorf("Client: negative %s gives no error", name)
		}
	}
}

// TestIdleConnectionsOverHTTP1 sends to hosts in turn, and then in the reverse order, a
// number of requests at the same time to each.
func TestIdleConnectionsOverHTTP1(t *testing.T) {
	for _, test := range []struct {
		name           string
		scheme         string
		opts           *egress.TransportOptions
		hosts, perHost int
		again          int // the connections of the way back
	}{
		{"default for a host", "https", nil, 1, 16, 0},
		{"more than the default", "http", nil, 1, 20, 4},
		{"less than the default", "http", &egress.TransportOptions{MaxIdleConnsPerHost: 5}, 1, 16, 11},
		{"more hosts", "https", &egress.TransportOptions{MaxIdleConns: 20}, 25, 1, 5},
		{"more hosts than the default", "http", nil, 1005, 1, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca, network := newAuthority(t), make(pipes)
				var dials atomic.Int32
				policy := egress.Development()
				policy.Resolver, policy.RootCAs = resolveTo(publicAddr), ca.pool()
				policy.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					dials.Add(1)
					return network.Dial(ctx, "", "")
				}
				arrived := make(chan chan struct{})
				server := &http.Server{
					Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
						proceed := make(chan struct{})
						arrived <- proceed
						<-proceed
					}),
					TLSConfig: ca.valid(t, "*.receiver.example"),
					Protocols: new(http.Protocols),
				}
				server.Protocols.SetHTTP1(true)
				defer func() { _ = server.Close() }()
				go func() {
					if test.scheme == "https" {
						_ = server.ServeTLS(network, "", "")
					} else {
						_ = server.Serve(network)
					}
				}()
				client := newClientWith(t, policy, test.opts)
				defer client.CloseIdleConnections()
				send := func(host int) {
					url := fmt.Sprintf("%s://h%d.receiver.example/", test.scheme, host)
					for range test.perHost {
						go func() {
							if err := post(t.Context(), client, url, nil, readAll); err != nil {
								t.Error(err)
							}
						}()
					}
					var waiting []chan struct{}
					for range test.perHost {
						waiting = append(waiting, <-arrived)
					}
					for _, proceed := range waiting {
						close(proceed)
					}
					synctest.Wait()
				}
				for host := range test.hosts {
					send(host)
				}
				if n, want := int(dials.Load()), test.hosts*test.perHost; n != want {
					t.Errorf("%d connections at first, want %d", n, want)
				}
				dials.Store(0)
				for host := range test.hosts {
					send(test.hosts - 1 - host)
				}
				if n := int(dials.Load()); n != test.again {
					t.Errorf("%d connections on the way back, want %d", n, test.again)
				}
			})
		})
	}
}
