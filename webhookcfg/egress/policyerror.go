package egress

// PolicyError is the rule that a URL or an address breaks, as a sentence such as "the port
// must be a number from 1 to 65535 without leading zeros". Extract it with [errors.As], or
// match it with [errors.Is]. If a URL breaks several rules, you get one of them.
//
// You can return the sentence to the client that sent the URL. It's printable ASCII without
// quotation marks and backslashes, and never contains input.
type PolicyError string

// You may want to tell these rules apart in a program.
const (
	// ErrNotHTTPS: the scheme is not https, and [Policy.AllowHTTP] is not set.
	ErrNotHTTPS PolicyError = "the URL must be absolute with the scheme https"
	// ErrNotPublic: the address isn't public unicast. IPv4 addresses outside the
	// special-purpose registry are public, and so are IPv6 addresses in 2000::/3 outside of
	// it.
	ErrNotPublic PolicyError = "the address must be a public unicast address"
)

// The other rules about the text of a URL, its host and port, and addresses.
const (
	errInvalidLength PolicyError = "the URL must have 1 to 2048 bytes"
	errInvalidByte   PolicyError = "the URL must consist of printable ASCII characters without spaces; a host name with other letters is given in punycode, such as xn--bcher-kva.example"
	errSpace         PolicyError = "the URL must not contain a space"
	// Parsers disagree about backslashes.
	errBackslash PolicyError = "the URL must not contain a backslash"
	// A fragment is never sent.
	errFragment PolicyError = "the URL must not contain a fragment"
	// RFC 3986 as [url.Parse] reads it, with only an IPv6 address allowed in brackets.
	errInvalidSyntax     PolicyError = "the URL must be well formed, such as https://example.com/webhook"
	errUnsupportedScheme PolicyError = "the URL must be absolute with the scheme https or http"
	errUserinfo          PolicyError = "the URL must not contain a user name or password"

	// What RFC 3986 doesn't allow in a path or a query. Some clients escape it and some don't, and
	// servers differ in what they accept.
	errTwoURLs        PolicyError = "the URL must be a single one: after a comma, semicolon or blank, http:// or https:// starts another"
	errPlaceholder    PolicyError = "the URL must not contain curly brackets: replace a placeholder such as {id} by its value"
	errPercent        PolicyError = "each percent sign in the URL must be followed by two hexadecimal digits"
	errVerticalBar    PolicyError = "the URL must not contain a vertical bar, except as %7C"
	errQuotationMark  PolicyError = "the URL must not contain a quotation mark, except as %22"
	errAngleBracket   PolicyError = "the URL must not contain an angle bracket, except as %3C or %3E"
	errCaret          PolicyError = "the URL must not contain a caret, except as %5E"
	errBacktick       PolicyError = "the URL must not contain a backtick, except as %60"
	errSquareBrackets PolicyError = "the path of the URL must not contain square brackets, except as %5B and %5D"

	errNoHost PolicyError = "the URL must have a host after its scheme and two slashes"
	// Internationalised names must be given as A-labels (RFC 5890).
	errInvalidHostName PolicyError = "the host name must consist of labels of 1 to 63 letters, digits, hyphens and underscores, with no hyphen at either end"
	errHostNameTooLong PolicyError = "the host name must have at most 253 bytes"
	// DNS ignores that dot, but TLS, HTTP and lists of names treat "a." and "a" as two hosts.
	errTrailingDot PolicyError = "the host name must not end with a dot"
	// Some resolvers take other spellings (127.1, 0x7f.1, 2130706433, 1e3) for addresses, and
	// others for names.
	errNumericHost PolicyError = "a host that ends in a number, or is a single label that starts with a digit, must be an IPv4 address of four decimal numbers without leading zeros"
	// Localhost and the names under it (RFC 6761), unless a loopback address is allowed.
	errLocalhost PolicyError = "the host must not be localhost or a name under it"
	// A zone names an interface of this host.
	errZone           PolicyError = "the address must not have a zone"
	errInvalidPort    PolicyError = "the port must be a number from 1 to 65535 without leading zeros"
	errPortNotAllowed PolicyError = "the port is not allowed"
	// In DenyPrefixes, or an address of this host.
	errAddressDenied PolicyError = "the address is not allowed"
)

// Error returns the rule.
func (e PolicyError) Error() string { return string(e) }
