// Package egress decides which URLs and addresses a service may call on behalf of
// its clients.
//
// A client that can choose a webhook URL can make the service send requests to a
// cloud metadata service, to a database on the internal network, or to the service
// itself (server-side request forgery). This package is the single check against
// that, applied at three points:
//
//	policy := &egress.Policy{}           // https and public addresses only
//
//	err := policy.Check(rawURL)          // when a URL is submitted: its text
//
//	prober, err := policy.Prober(nil)    // before it is accepted: is it reachable?
//	err = prober.Probe(ctx, client, egress.NewURL(rawURL))
//
//	sender, err := policy.Client()       // on every call
//	resp, err := sender.Post(rawURL, contentType, body)
//
// A URL is checked byte by byte before it is parsed, and then against the strict
// grammar that the constants of type [PolicyError] spell out, so that no two parsers
// find different hosts in it. Addresses are checked as literals, as results of
// name resolution, and again just before a socket connects, so that a name that
// resolves to something else a moment later (DNS rebinding) gains nothing. An address
// that is neither in [Policy.AllowPrefixes] nor public unicast is never connected to.
//
// # Addresses
//
// The first matching line decides:
//
//	address with a zone                        refused
//	address in Policy.DenyPrefixes             refused
//	address in Policy.AllowPrefixes            allowed
//	64:ff9b::/96 with Policy.AllowNAT64        as the IPv4 address embedded in it
//	IPv4 in the special-purpose registry       refused
//	IPv6 outside 2000::/3, or in the registry  refused
//	address of this host                       refused
//	any other                                  allowed
//
// An IPv4-mapped IPv6 address is treated as the IPv4 address. An address added to
// this host is refused after at most ten seconds.
//
// # Limits
//
// The default probe shows that a server accepts connections at the host and port
// and, for https, presents a valid certificate for the host. It does not show that
// the path exists, that the receiver belongs to the client, or that it wants the
// notifications: a client can direct them at a third party. [Handshake] asks the
// receiver for its consent. A probe discloses whether a public endpoint is open, which
// is one reason why probes are rate limited.
//
// The policy checks addresses, not what they lead to. A public address that leads
// into an internal network, such as that of a load balancer in front of it, belongs
// in [Policy.DenyPrefixes]. A transparent proxy opens its own connections, which
// the policy does not see.
//
// # URLs are secrets
//
// Webhook URLs often carry a token in their path or query. A [URL] always formats as
// scheme, host and port, and the errors of this package contain no more. The errors
// of [http.Client] and [url.Parse] contain whole URLs: [RedactError] removes them.
package egress
