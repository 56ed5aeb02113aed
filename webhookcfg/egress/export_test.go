package egress

import (
	"net/http"
	"slices"
)

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

// IsAboutSyntax reports whether an error is a rule that only new URLs have to obey.
func IsAboutSyntax(err error) bool {
	rule, _ := err.(PolicyError)
	return slices.Contains([]PolicyError{ErrTwoURLs, ErrPlaceholder, ErrPercent, ErrVerticalBar, ErrQuotationMark, ErrAngleBracket, ErrCaret, ErrBacktick, ErrSquareBrackets}, rule)
}

// The rules that only tests tell apart.
const (
	ErrInvalidLength     = errInvalidLength
	ErrInvalidByte       = errInvalidByte
	ErrSpace             = errSpace
	ErrTwoURLs           = errTwoURLs
	ErrPlaceholder       = errPlaceholder
	ErrPercent           = errPercent
	ErrVerticalBar       = errVerticalBar
	ErrQuotationMark     = errQuotationMark
	ErrAngleBracket      = errAngleBracket
	ErrCaret             = errCaret
	ErrBacktick          = errBacktick
	ErrSquareBrackets    = errSquareBrackets
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
	ErrSpace,
	ErrTwoURLs,
	ErrPlaceholder,
	ErrPercent,
	ErrVerticalBar,
	ErrQuotationMark,
	ErrAngleBracket,
	ErrCaret,
	ErrBacktick,
	ErrSquareBrackets,
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
