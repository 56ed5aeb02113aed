// Package egress decides which URLs and addresses your service may call for its clients.
//
// A client that chooses a webhook URL could make your service send requests to a cloud
// metadata service, to a database in your network, or to the service itself (server-side
// request forgery). A [Policy] prevents that, and you apply it three times:
//
//	policy := &egress.Policy{}           // https and public addresses only
//
//	err := policy.Check(rawURL)          // when a client submits a URL: is its text allowed?
//
//	prober, err := policy.Prober(nil)    // before you accept it: is it reachable?
//	err = prober.Probe(ctx, client, egress.NewURL(rawURL))
//
//	sender, err := policy.Client(nil)    // on every call
//	resp, err := sender.Post(rawURL, contentType, body)
//
// If you use the handler of package [example.com/go-webhookcfg/webhookcfg] and the sender of
// package [example.com/go-webhookcfg/webhookcfg/deliver], give both the same policy. They do the
// rest.
//
// # Set up a policy
//
// The zero [Policy] allows https, public addresses and any port. You can change that:
//
//   - On a developer's machine, use [Development]. It also allows http and loopback.
//   - If receivers are in your own network, put their addresses into [Policy.AllowPrefixes], as
//     the example of [Policy] does.
//   - If public addresses lead into your network, put them into [Policy.DenyPrefixes]. The
//     policy can't tell where an address leads.
//   - If your machines have IPv6 only and use NAT64, set [Policy.AllowNAT64].
//   - If your receivers use few ports, list them in [Policy.Ports].
//
// # What is allowed
//
// [Policy.Check] checks a URL byte by byte before it's parsed, and then against a strict
// grammar, so that no two parsers can find different hosts in it. [Policy.CheckAddr] decides
// which addresses are public. Literal addresses are checked with the URL, and those of a name
// just before a socket connects, so a name that resolves to something else a moment later (DNS
// rebinding) gains nothing.
//
// # Probe a URL
//
// The default probe shows that a server accepts connections at the host and port and, for
// https, has a valid certificate. It doesn't show that the path exists, or that the receiver
// wants your notifications: a client can direct them at a third party. Set
// [ProberOptions.HTTPProbe] if receivers should give their consent first:
//
//   - [example.com/go-webhookcfg/webhookcfg/deliver.Challenge] suits receivers that verify
//     signatures, and is the strongest: the receiver proves that it has this client's key.
//   - [Echo] suits receivers behind a gateway or a low-code tool, which can send a field of
//     the request back but can't sign.
//   - [Handshake] suits receivers of CloudEvents.
//
// A probe reveals whether a public endpoint is open, which is one reason why probes are rate
// limited. Don't show clients why a probe failed ([Reason]), or they could scan networks. You
// can show them a [PolicyError].
//
// # Call receivers
//
// Use [Policy.Client], or [Policy.Transport] with a client of your own. Both speak HTTP/1.1
// only, as probes do, so you can't reach a receiver that speaks only HTTP/2.
//
// A receiver can hang, be slow, or never stop sending. Give every request a deadline, and no
// call, connection or goroutine outlives it, except for idle connections. The deadline covers
// a call from the lookup of the name to the last byte of the response body. [TransportOptions]
// and [ProberOptions] list the other limits.
//
// The errors contain nothing that the receiver sent. Its header and status text may contain
// control bytes, though.
//
// # Keep URLs secret
//
// Webhook URLs often carry a token in their path or query. A [URL] always prints as scheme,
// host and port, and the errors of this package contain no more of it. Errors of
// [http.Client] and [url.Parse] contain whole URLs, so pass them through [RedactError] before
// you log them.
package egress
