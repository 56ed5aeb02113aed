package egress

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxURLBytes = 2048

// endpoint is what a checked URL leads to.
type endpoint struct {
	tls  bool
	host string     // without brackets
	addr netip.Addr // valid if host is a literal address
	port uint16
}

// String returns host and port, as in a URL.
func (e endpoint) String() string {
	return net.JoinHostPort(e.host, strconv.Itoa(int(e.port)))
}

// parse applies every rule that needs no network.
func (p *Policy) parse(rawURL string) (endpoint, error) {
	if err := checkBytes(rawURL); err != nil {
		return endpoint{}, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return endpoint{}, ErrInvalidSyntax
	}
	return p.judgeURL(u)
}

// judgeURL applies the rules about the parts of a URL.
func (p *Policy) judgeURL(u *url.URL) (endpoint, error) {
	if err := p.checkScheme(u.Scheme); err != nil {
		return endpoint{}, err
	}
	switch {
	case u.User != nil:
		return endpoint{}, ErrUserinfo
	case u.Fragment != "":
		return endpoint{}, ErrFragment
	case u.Opaque != "":
		return endpoint{}, ErrNoHost
	}
	to := endpoint{tls: u.Scheme == "https", port: 80}
	if to.tls {
		to.port = 443
	}
	host, rest, bracketed := cutHost(u.Host)
	to.host = host
	if rest != "" {
		port, err := parsePort(rest)
		if err != nil {
			return endpoint{}, err
		}
		to.port = port
	}
	return p.judge(to, bracketed)
}

// checkBytes judges the text before any parser sees it: what comes after need
// not fear control characters, or characters that other parsers read otherwise.
func checkBytes(rawURL string) error {
	if len(rawURL) < 1 || len(rawURL) > maxURLBytes {
		return ErrInvalidLength
	}
	for i := range len(rawURL) {
		if rawURL[i] <= ' ' || rawURL[i] > '~' {
			return ErrInvalidByte
		}
	}
	switch {
	case strings.IndexByte(rawURL, '\\') >= 0:
		return ErrBackslash
	case strings.IndexByte(rawURL, '#') >= 0:
		return ErrFragment
	}
	return nil
}

func (p *Policy) checkScheme(scheme string) error {
	switch {
	case scheme == "https", scheme == "http" && p.AllowHTTP:
		return nil
	case p.AllowHTTP:
		return ErrUnsupportedScheme
	default:
		return ErrNotHTTPS
	}
}

// judge applies the rules about host and port, and fills in the address of a
// host that is one. bracketed says that the host stood in brackets.
func (p *Policy) judge(to endpoint, bracketed bool) (endpoint, error) {
	addr, err := parseHost(to.host, bracketed)
	switch {
	case err != nil:
		return endpoint{}, err
	case addr.IsValid():
		err = p.CheckAddr(addr)
	case isLocalhost(to.host) && !p.allowsLoopback():
		err = ErrLocalhost
	}
	if err == nil {
		err = p.checkPort(to.port)
	}
	if err != nil {
		return endpoint{}, err
	}
	to.addr = addr.Unmap()
	return to, nil
}

// cutHost splits an authority without userinfo into the host, without its
// brackets, and the rest, ":" and a port or nothing.
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

// parsePort reads a colon and a number from 1 to 65535 without leading zeros.
func parsePort(text string) (uint16, error) {
	digits, hasColon := strings.CutPrefix(text, ":")
	if !hasColon || !isNumber(digits) || digits[0] == '0' {
		return 0, ErrInvalidPort
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, ErrInvalidPort
	}
	return uint16(port), nil
}

func (p *Policy) checkPort(port uint16) error {
	if len(p.Ports) > 0 && !slices.Contains(p.Ports, port) {
		return ErrPortNotAllowed
	}
	return nil
}
