package egress

// Rule is a rule that a URL or an address must keep, and at the same time the
// error that says it was broken: find it with [errors.As], or compare it with
// [errors.Is].
//
// The text of a rule is one fixed sentence of printable ASCII without quotation
// marks and backslashes. It never holds input, so it can be sent to whoever sent
// the URL.
type Rule uint8

// The rules about the text of a URL come first, then those about its host and
// port, then those about addresses. A URL that breaks several rules is reported
// with one of them.
const (
	// RuleLength: the URL has 1 to 2048 bytes.
	RuleLength Rule = iota + 1
	// RuleBytes: every byte is printable ASCII, and none a space.
	RuleBytes
	// RuleBackslash: there is no backslash; parsers disagree about it.
	RuleBackslash
	// RuleFragment: there is no "#"; a fragment is never sent.
	RuleFragment
	// RuleSyntax: the URL keeps to RFC 3986 as [url.Parse] understands it; what
	// stands in brackets is an IPv6 address.
	RuleSyntax
	// RuleHTTPS: the scheme is https. It stands for RuleScheme where
	// [Policy.AllowHTTP] is not set.
	RuleHTTPS
	// RuleScheme: the scheme is https or http.
	RuleScheme
	// RuleUserinfo: there is no user name or password.
	RuleUserinfo

	// RuleHost: there is a host, after "//".
	RuleHost
	// RuleName: a host name is made of labels of 1 to 63 letters, digits, hyphens
	// and underscores, without a hyphen at either end, parted by single dots.
	// Internationalised names are written as A-labels (RFC 5890).
	RuleName
	// RuleNameLength: a host name has at most 253 bytes.
	RuleNameLength
	// RuleTrailingDot: a host name does not end with a dot. The dot means nothing
	// in DNS, but TLS, HTTP and lists of names take "a." and "a" for two hosts.
	RuleTrailingDot
	// RuleNumericHost: a host whose last label is a number is an IPv4 address of
	// four decimal numbers without leading zeros. The other spellings (127.1,
	// 0x7f.1, 2130706433) are an address to some resolvers and a name to others.
	RuleNumericHost
	// RuleLocalhost: the host is neither localhost nor under it (RFC 6761), except
	// where the policy allows a loopback address.
	RuleLocalhost
	// RuleZone: an address has no zone; a zone names an interface of this host.
	RuleZone
	// RulePort: the port is absent, or 1 to 65535 in digits without leading zeros.
	RulePort
	// RulePortAllowed: the port is one of [Policy.Ports].
	RulePortAllowed

	// RulePublic: the address is public unicast: an IPv4 address outside the
	// special-purpose registry, or an IPv6 address inside 2000::/3 and outside it.
	RulePublic
	// RuleAddressAllowed: the address is neither in [Policy.DenyPrefixes] nor one
	// of this host's own.
	RuleAddressAllowed
)

var ruleTexts = [...]string{
	RuleLength:         "the URL must have 1 to 2048 bytes",
	RuleBytes:          "the URL must consist of printable ASCII characters without spaces",
	RuleBackslash:      "the URL must not contain a backslash",
	RuleFragment:       "the URL must not contain a fragment",
	RuleSyntax:         "the URL must be well formed: a scheme, two slashes, a host, and what may follow",
	RuleHTTPS:          "the URL must be absolute with the scheme https",
	RuleScheme:         "the URL must be absolute with the scheme https or http",
	RuleUserinfo:       "the URL must not contain a user name or password",
	RuleHost:           "the URL must have a host after its scheme and two slashes",
	RuleName:           "the host name must consist of labels of 1 to 63 letters, digits, hyphens and underscores, with no hyphen at either end",
	RuleNameLength:     "the host name must have at most 253 bytes",
	RuleTrailingDot:    "the host name must not end with a dot",
	RuleNumericHost:    "a host that ends in a number must be an IPv4 address of four decimal numbers without leading zeros",
	RuleLocalhost:      "the host must not be localhost or a name under it",
	RuleZone:           "the address must not have a zone",
	RulePort:           "the port must be a number from 1 to 65535 without leading zeros",
	RulePortAllowed:    "the port must be one that this service calls",
	RulePublic:         "the address must be a public unicast address",
	RuleAddressAllowed: "the address must be one that this service calls",
}

// Error returns the rule as a sentence, such as "the port must be a number from
// 1 to 65535 without leading zeros".
func (r Rule) Error() string {
	if r == 0 || int(r) >= len(ruleTexts) {
		return "unknown rule"
	}
	return ruleTexts[r]
}
