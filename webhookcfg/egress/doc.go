// Package egress says which URLs and addresses a service may call for its clients.
//
// A client that can choose a webhook URL can make the service call it: a metadata
// service, a database on the internal network, the service itself. This package
// holds the one predicate against that, for the three moments when it is needed:
//
//	policy := &egress.Policy{}           // https and public addresses only
//
//	err := policy.Check(rawURL)          // when a URL is offered: its text
//
//	prober, err := policy.Prober(nil)    // before it is accepted: can it be reached?
//	err = prober.Probe(ctx, client, egress.NewURL(rawURL))
//
//	sender, err := policy.Client()       // whenever it is called
//	resp, err := sender.Post(rawURL, contentType, body)
//
// A URL is judged byte by byte before it is parsed, by the strict grammar that the
// constants of type [PolicyError] spell out, so that no two parsers can read it as two
// hosts. Addresses are judged as literals, as the answers of a resolver, and again
// when a socket is about to connect, so that it does not matter what a name meant
// a moment ago. An address that is neither listed in [Policy.AllowPrefixes] nor
// public unicast is never connected to.
//
// # What may be called
//
// The first line that applies decides:
//
//	address with a zone                        refused
//	address in Policy.DenyPrefixes             refused
//	address in Policy.AllowPrefixes            allowed
//	64:ff9b::/96 with Policy.AllowNAT64        as the IPv4 address inside it
//	IPv4 in the special-purpose registry       refused
//	IPv6 outside 2000::/3, or in the registry  refused
//	address of this host                       refused
//	every other                                allowed
//
// IPv4-mapped IPv6 addresses are IPv4 addresses. A new address of this host goes
// unnoticed for up to ten seconds.
//
// # What it does not promise
//
// The default probe shows that somebody answers at the host and port, for https
// somebody with a valid certificate for the host. It does not show that the path
// exists, nor that the receiver belongs to the client or wants to be called: a
// client can point notifications at a third party. [Handshake] asks the receiver
// for its consent. A probe tells a client whether a public endpoint is open; its
// rate is limited for that reason.
//
// The policy judges addresses, not what is behind them. A public address that
// leads into an internal network, such as that of a load balancer in front of it,
// belongs in [Policy.DenyPrefixes]. A proxy that all traffic goes through
// without being named (a transparent one) dials for itself.
//
// # URLs are secrets
//
// Webhook URLs often carry a token in path or query. A [URL] prints as scheme,
// host and port however it is printed, and the errors of this package show no
// more. [http.Client] and [url.Parse] do print whole URLs in their errors:
// [RedactError] takes them out.
package egress
