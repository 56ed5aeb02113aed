package auth

import (
	"errors"
	"strings"
	"unicode/utf8"
)

const maxName = 128

var (
	errName   = errors.New("an id or owner is not 1 to 128 visible ASCII characters without a colon, the first of them not #")
	errSecret = errors.New("a secret is empty, not valid UTF-8, or holds a control character")
)

// checkName holds ids and owners to what HTTP Basic carries (RFC 7617 §2: no colon)
// and a line of a credential file can begin with.
func checkName(name string) error {
	visible := func(c rune) bool { return '!' <= c && c <= '~' && c != ':' }
	if name == "" || len(name) > maxName || name[0] == '#' || strings.ContainsFunc(name, func(c rune) bool { return !visible(c) }) {
		return errName
	}
	return nil
}

// checkSecret refuses a secret that no request can present.
func checkSecret(secret string) error {
	control := func(c rune) bool { return c < ' ' || c == 0x7F }
	if secret == "" || !utf8.ValidString(secret) || strings.ContainsFunc(secret, control) {
		return errSecret
	}
	return nil
}
