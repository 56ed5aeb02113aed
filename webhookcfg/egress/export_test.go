package egress

import "net/http"

// Pooled returns how many hosts and idle connections the transport of a client has.
func Pooled(c *http.Client) (hosts, idle int) {
	p := c.Transport.(*Transport).pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.hosts), p.idle.Len()
}

// Stray returns how many hosts get no second request over a connection of a client.
func Stray(c *http.Client) int {
	p := c.Transport.(*Transport).pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stray.Len()
}

// MaxStray is the limit of Stray.
const MaxStray = maxStray

// The rules that only tests tell apart.
const (
	ErrInvalidLength     = errInvalidLength
	ErrInvalidByte       = errInvalidByte
	ErrBackslash         = errBackslash
	ErrFragment          = errFragment
	ErrInvalidSyntax     = errInvalidSyntax
	ErrUnsupportedScheme = errUnsupportedScheme
	ErrUserinfo          = errUserinfo
	ErrNoHost            = errNoHost
	ErrInvalidHostName   = errInvalidHostName
	ErrHostNameTooLong   = errHostNameTooLong
	ErrTrailingDot       = errTrailingDot
	ErrNumericHost       = errNumericHost
	ErrLocalhost         = errLocalhost
	ErrZone              = errZone
	ErrInvalidPort       = errInvalidPort
	ErrPortNotAllowed    = errPortNotAllowed
	ErrAddressDenied     = errAddressDenied
)

// PolicyErrors are all of them.
var PolicyErrors = []PolicyError{
	ErrInvalidLength,
	ErrInvalidByte,
	ErrBackslash,
	ErrFragment,
	ErrInvalidSyntax,
	ErrNotHTTPS,
	ErrUnsupportedScheme,
	ErrUserinfo,
	ErrNoHost,
	ErrInvalidHostName,
	ErrHostNameTooLong,
	ErrTrailingDot,
	ErrNumericHost,
	ErrLocalhost,
	ErrZone,
	ErrInvalidPort,
	ErrPortNotAllowed,
	ErrNotPublic,
	ErrAddressDenied,
}
