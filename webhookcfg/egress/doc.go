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
//	sender, err := policy.Client(nil)    // on every call
//	resp, err := sender.Post(rawURL, contentType, body)
//
// A URL is checked byte by byte before it is parsed, and then against a strict grammar,
// so that no two parsers find different hosts in it. Addresses are checked as literals,
// as results of name resolution, and again just before a socket connects, so that a name
// that resolves to something else a moment later (DNS rebinding) gains nothing. An address
// that is neither in [Policy.AllowPrefixes] nor public unicast is never connected to.
//
// # URLs
//
// A URL is absolute and has at most 2048 bytes, all of them printable ASCII, without
// spaces, backslashes, a fragment, a user name or a password. The scheme is https, or
// http with [Policy.AllowHTTP]. The host is an IPv4 address of four decimal numbers
// without leading zeros, an IPv6 address in brackets, or a name. A name has at most 253
// bytes and consists of labels of 1 to 63 letters, digits, hyphens and underscores. It
// does not end in a dot, a number or "localhost"; give internationalised names as
// A-labels (RFC 5890). A port is a number from 1 to 65535 without leading zeros, and one of
// [Policy.Ports].
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
// this host is refused after at most ten seconds, or a minute if [Policy.LocalAddrs] is
// slow. If that fails for a minute, only addresses in AllowPrefixes are still called. Other
// public addresses get an error that wraps [ErrUnavailable], which is not a refusal.
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
// in [Policy.DenyPrefixes]. So does the prefix of a NAT64 that is specific to the
// network (RFC 6052 section 2.2): an address in it leads to the IPv4 address that it
// embeds, private ones included, but looks like any public address. A transparent proxy
// opens its own connections, which the policy does not see.
//
// The addresses of this host are those of its network interfaces. An address that only
// a local route directs to this host, such as a range bound with AnyIP, is not among
// them: add it to [Policy.LocalAddrs] or [Policy.DenyPrefixes].
//
// AllowPrefixes, DenyPrefixes and Ports are not secret: a client can find them out by
// submitting URLs with literal addresses and reading which are refused.
//
// Receivers are called over HTTP/1.1, in probes and in requests alike. A receiver that
// speaks only HTTP/2 is unreachable. The default probe notices, with [ReasonTLS], if the
// receiver refuses the handshake as RFC 7301 demands; servers in Go accept it, and fail at
// the first request.
//
// # Hostile receivers
//
// A receiver may be silent, slow or endless at every step. No call, connection or goroutine
// outlives the deadline, except for idle connections. It bounds a call from the lookup of
// the name to the last byte of the response body:
//
//   - A probe ends after [ProberOptions.Timeout], also with an [HTTPProbe] that ignores
//     its context.
//   - A request over a [Transport] ends with its context or with the Timeout of the
//     client, which is 30 seconds in [Policy.Client]. One of them must be set: of a
//     request without, only the lookup and the attempts to connect (10 seconds), the TLS
//     handshake (10 seconds) and the wait for the header of the response (30 seconds after
//     the request has been written) are bounded.
//
// Idle connections are closed after 90 seconds. 1000 are kept, 16 for each host; set
// [TransportOptions] to change that. The header of a response has at most 64 KiB, in a
// probe 16 KiB. A 101 response, whose body no deadline would end, is an error.
//
// A receiver can send at most eight certificates and 16 KiB in a TLS handshake. Keys of
// intermediate authorities can have up to 384 bits (ECDSA) or 4096 bits (RSA). Larger ones
// are left out of the chain, unless they are roots that you trust.
//
// Errors contain nothing that the receiver sent, but its header and the status text may
// contain control bytes. If a receiver sends more than a response, net/http writes one
// line of less than 1 KiB to the standard logger, which quotes up to 200 bytes of it. Only
// [log.SetOutput] prevents that. All trailers of a response together, and the extension of
// a chunk, have less than 200 bytes.
//
// # URLs are secrets
//
// Webhook URLs often carry a token in their path or query. A [URL] always formats as
// scheme, host and port, and the errors of this package contain no more. The errors
// of [http.Client] and [url.Parse] contain whole URLs: [RedactError] removes them.
package egress
