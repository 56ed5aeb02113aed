package egress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func ExamplePolicy_Check() {
	policy := &egress.Policy{}
	for _, url := range []string{
		"https://hooks.example.com/notify?token=abc",
		"http://hooks.example.com/notify",
		"https://169.254.169.254/latest/meta-data/",
		"https://0x7f.1/",
	} {
		fmt.Println(policy.Check(url))
	}
	// Output:
	// <nil>
	// the URL must be absolute with the scheme https
	// the address must be a public unicast address
	// a host that ends in a number, or is a single label that starts with a digit, must be an IPv4 address of four decimal numbers without leading zeros
}

// If your receivers are in an internal network, allow their prefixes.
func ExamplePolicy_internal() {
	policy := &egress.Policy{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")},
		DenyPrefixes:  []netip.Prefix{netip.MustParsePrefix("10.20.0.1/32")},
		Ports:         []uint16{443},
	}
	fmt.Println(policy.Validate())
	fmt.Println(policy.Check("https://10.20.7.7/notify"))
	fmt.Println(policy.Check("https://10.20.0.1/notify"))
	fmt.Println(policy.Check("https://10.21.7.7/notify"))
	// Output:
	// <nil>
	// <nil>
	// the address is not allowed
	// the address must be a public unicast address
}

func ExampleProber_Probe() {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()

	prober, err := egress.Development().Prober(nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prober.Probe(context.Background(), "client-1", egress.NewURL(receiver.URL)))

	var rule egress.PolicyError
	err = prober.Probe(context.Background(), "client-1", egress.NewURL("http://10.0.0.1/"))
	fmt.Println(errors.As(err, &rule), err)
	// Output:
	// <nil>
	// true the address must be a public unicast address
}

func ExamplePolicy_Client() {
	receiver := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	defer receiver.Close()

	client, err := egress.Development().Client(nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Post(receiver.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		log.Fatal(egress.RedactError(err))
	}
	if _, _, err := egress.ReadBody(resp, 4096); err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.StatusCode)
	// Output: 302
}

// The probe asks the receiver for its consent.
func ExampleHandshake() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.Header().Set("WebHook-Allowed-Origin", r.Header.Get("WebHook-Request-Origin"))
		}
	}))
	defer receiver.Close()

	consent, err := egress.Handshake("sender.example.com")
	if err != nil {
		log.Fatal(err)
	}
	prober, err := egress.Development().Prober(&egress.ProberOptions{HTTPProbe: consent})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prober.Probe(context.Background(), "client-1", egress.NewURL(receiver.URL)))
	// Output: <nil>
}

func ExampleURL() {
	url := egress.NewURL("https://hooks.example.com:8443/services/T0/B0?token=abc")
	fmt.Println(url)
	fmt.Printf("%+v\n", struct{ Target egress.URL }{url})
	fmt.Println(url.Reveal())
	// Output:
	// https://hooks.example.com:8443
	// {Target:https://hooks.example.com:8443}
	// https://hooks.example.com:8443/services/T0/B0?token=abc
}

// The receiver sends the text back. Gateways and low-code tools can do that, too.
func ExampleEcho() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct{ Type, Echo string }
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&event)
		if err == nil && event.Type == "webhook.echo" {
			_ = json.NewEncoder(w).Encode(map[string]string{"echo": event.Echo})
		}
	}))
	defer receiver.Close()

	// In your service, use the handler's policy, and pass the prober as
	// webhookcfg.Options.Prober.
	prober, err := egress.Development().Prober(&egress.ProberOptions{HTTPProbe: egress.Echo})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(prober.Probe(context.Background(), "client-1", egress.NewURL(receiver.URL)))
	// Output: <nil>
}
