package egress

import (
	"net/netip"
	"strings"
)

const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// parseHost returns the address that host spells, or the zero Addr for a name.
func parseHost(host string, bracketed bool) (netip.Addr, error) {
	switch {
	case host == "":
		return netip.Addr{}, ErrNoHost
	case bracketed:
		return parseIPv6(host)
	case endsInNumber(host):
		return parseIPv4(host)
	default:
		return netip.Addr{}, checkName(host)
	}
}

// parseIPv6 leaves zones and IPv4-mapped addresses to [Policy.CheckAddr].
func parseIPv6(host string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is6() {
		return netip.Addr{}, ErrInvalidSyntax
	}
	return addr, nil
}

func parseIPv4(host string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is4() {
		return netip.Addr{}, ErrNumericHost
	}
	return addr, nil
}

// endsInNumber is the test by which the WHATWG URL Standard tells addresses from
// names, with any "0x..." taken for a number.
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
		return ErrTrailingDot
	case len(name) > maxNameBytes:
		return ErrHostNameTooLong
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return ErrInvalidHostName
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

// isLocalhost reports whether name is localhost or under it, RFC 6761 section 6.3.
func isLocalhost(name string) bool {
	const localhost = "localhost"
	if len(name) < len(localhost) {
		return false
	}
	head, tail := name[:len(name)-len(localhost)], name[len(name)-len(localhost):]
	return strings.EqualFold(tail, localhost) && (head == "" || head[len(head)-1] == '.')
}
