package egress

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxURLBytes = 2048

// destination is the host and port of a checked URL.
type destination struct {
	tls  bool
	host string     // without brackets
	addr netip.Addr // valid if host is a literal address
	port uint16
}

// String returns host and port as in a URL. Names are in lower case, and an address is always
// spelled the same.
func (d destination) String() string {
	host := strings.ToLower(d.host)
	if d.addr.IsValid() {
		host = d.addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(d.port)))
}

// parse applies the rules that need no name resolution.
func (p *Policy) parse(ctx context.Context, rawURL string) (destination, error) {
	if len(rawURL) <= maxURLBytes {
		if err := checkSyntax(rawURL); err != nil {
			return destination{}, err
		}
	}
	return p.parseStored(ctx, rawURL)
}

// checkSyntax applies the rules that only new URLs have to obey: those for the characters of path
// and query, and those that tell people what they did.
func checkSyntax(rawURL string) error {
	_, rest, _ := strings.Cut(rawURL, "://")
	beforeQuery, _, _ := strings.Cut(rest, "?")
	if hasSecondURL(beforeQuery) {
		return errTwoURLs
	}
	if strings.ContainsAny(rawURL, "{}") {
		return errPlaceholder
	}
	start := strings.IndexAny(rest, "/?")
	if start < 0 {
		return nil
	}
	for i := start; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '%':
			if i+2 >= len(rest) || !isHex(rest[i+1]) || !isHex(rest[i+2]) {
				return errPercent
			}
		case '|':
			return errVerticalBar
		case '"':
			return errQuotationMark
		case '<', '>':
			return errAngleBracket
		case '^':
			return errCaret
		case '`':
			return errBacktick
		case '[', ']':
			if i < len(beforeQuery) {
				return errSquareBrackets
			}
		}
	}
	return nil
}

// separators are what people put between two URLs, also as browsers and programs escape it in a path.
var separators = []string{",", ";", " ", "\t", "\r", "\n", "%2c", "%3b", "%20", "%09", "%0d", "%0a"}

// hasSecondURL reports whether another URL follows a separator. If it's in a query, or escaped
// itself, it's an argument.
func hasSecondURL(beforeQuery string) bool {
	lower := strings.ToLower(beforeQuery)
	for _, scheme := range []string{"http://", "https://"} {
		for rest := lower; ; {
			before, after, found := strings.Cut(rest, scheme)
			if !found {
				break
			}
			if slices.ContainsFunc(separators, func(s string) bool { return strings.HasSuffix(before, s) }) {
				return true
			}
			rest = after
		}
	}
	return false
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// parseStored is parse without checkSyntax.
func (p *Policy) parseStored(ctx context.Context, rawURL string) (destination, error) {
	if err := checkBytes(rawURL); err != nil {
		return destination{}, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return destination{}, errInvalidSyntax
	}
	return p.checkURL(ctx, u)
}

// checkURL applies the rules for the components of a URL.
func (p *Policy) checkURL(ctx context.Context, u *url.URL) (destination, error) {
	if err := p.checkScheme(u.Scheme); err != nil {
		return destination{}, err
	}
	to, err := destinationOf(u)
	if err == nil {
		err = p.checkDestination(ctx, to)
	}
	if err != nil {
		return destination{}, err
	}
	return to, nil
}

// destinationOf returns the host and port of an http or https URL.
func destinationOf(u *url.URL) (destination, error) {
	switch {
	case u.User != nil:
		return destination{}, errUserinfo
	case u.Fragment != "":
		return destination{}, errFragment
	case u.Opaque != "":
		return destination{}, errNoHost
	}
	to := destination{tls: u.Scheme == "https", port: 80}
	if to.tls {
		to.port = 443
	}
	host, rest, bracketed := cutHost(u.Host)
	if rest != "" {
		port, err := parsePort(rest)
		if err != nil {
			return destination{}, err
		}
		to.port = port
	}
	return to.at(host, bracketed)
}

// at returns the destination with a host, which was in brackets or not.
func (d destination) at(host string, bracketed bool) (destination, error) {
	addr, err := parseHost(host, bracketed)
	if err != nil {
		return destination{}, err
	}
	if addr.Zone() != "" { // which Unmap would remove
		return destination{}, errZone
	}
	d.host, d.addr = host, addr.Unmap()
	return d, nil
}

// checkBytes applies the rules for the text as a whole before we parse it. They exclude
// control characters and characters that parsers disagree about.
func checkBytes(rawURL string) error {
	if len(rawURL) < 1 || len(rawURL) > maxURLBytes {
		return errInvalidLength
	}
	for i := range len(rawURL) {
		if rawURL[i] == ' ' {
			return errSpace
		}
		if rawURL[i] < ' ' || rawURL[i] > '~' {
			return errInvalidByte
		}
	}
	switch {
	case strings.IndexByte(rawURL, '\\') >= 0:
		return errBackslash
	case strings.IndexByte(rawURL, '#') >= 0:
		return errFragment
	}
	return nil
}

func (p *Policy) checkScheme(scheme string) error {
	switch {
	case scheme == "https", scheme == "http" && p.AllowHTTP:
		return nil
	case p.AllowHTTP:
		return errUnsupportedScheme
	default:
		return ErrNotHTTPS
	}
}

// checkDestination applies the rules for host and port.
func (p *Policy) checkDestination(ctx context.Context, to destination) error {
	if to.addr.IsValid() {
		if err := p.checkAddr(ctx, to.addr); err != nil {
			return err
		}
	} else if isLocalhost(to.host) && !p.allowsLoopback() {
		return errLocalhost
	}
	return p.checkPort(to.port)
}

// cutHost splits an authority without userinfo into the host, without brackets, and the rest,
// which is empty or ":" and a port.
func cutHost(authority string) (host, rest string, bracketed bool) {
	if strings.HasPrefix(authority, "[") {
		if end := strings.IndexByte(authority, ']'); end > 0 {
			return authority[1:end], authority[end+1:], true
		}
	}
	if colon := strings.IndexByte(authority, ':'); colon >= 0 {
		return authority[:colon], authority[colon:], false
	}
	return authority, "", false
}

// parsePort parses a colon and a number from 1 to 65535 without leading zeros.
func parsePort(text string) (uint16, error) {
	digits, hasColon := strings.CutPrefix(text, ":")
	if !hasColon || !isNumber(digits) || digits[0] == '0' {
		return 0, errInvalidPort
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, errInvalidPort
	}
	return uint16(port), nil
}

const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// parseHost returns the address if host is a literal one, and the zero Addr if it's a name.
func parseHost(host string, bracketed bool) (netip.Addr, error) {
	switch {
	case host == "":
		return netip.Addr{}, errNoHost
	case bracketed:
		return parseIPv6(host)
	case endsInNumber(host):
		return parseIPv4(host)
	}
	err := checkName(host)
	if err == nil && isNumber(host[:1]) && !strings.Contains(host, ".") {
		err = errNumericHost // such as 1e3: a name in the WHATWG URL Standard, but a number to some resolvers
	}
	return netip.Addr{}, err
}

// parseIPv6 leaves zones and IPv4-mapped addresses to [Policy.CheckAddr].
func parseIPv6(host string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is6() {
		return netip.Addr{}, errInvalidSyntax
	}
	return addr, nil
}

func parseIPv4(host string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return netip.Addr{}, errNumericHost
	}
	return addr, nil
}

// endsInNumber is the ends-in-a-number checker of the WHATWG URL Standard, which tells
// addresses from names. Unlike it, we count any label "0x..." as a number.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if len(last) >= 2 && last[0] == '0' && last[1]|0x20 == 'x' {
		return true
	}
	return isNumber(last)
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func checkName(name string) error {
	switch {
	case name[len(name)-1] == '.':
		return errTrailingDot
	case len(name) > maxNameBytes:
		return errHostNameTooLong
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return errInvalidHostName
		}
	}
	return nil
}

func isLabel(label string) bool {
	if len(label) < 1 || len(label) > maxLabelBytes || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isLocalhost reports whether name is localhost or a subdomain of it (RFC 6761
// section 6.3).
func isLocalhost(name string) bool {
	const localhost = "localhost"
	if len(name) < len(localhost) {
		return false
	}
	head, tail := name[:len(name)-len(localhost)], name[len(name)-len(localhost):]
	return strings.EqualFold(tail, localhost) && (head == "" || head[len(head)-1] == '.')
}
