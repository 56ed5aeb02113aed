package redact

import "errors"

// Fixed is an error with a text that this module wrote. The text contains nothing from a
// caller, so you can show it even where you withhold the errors around it. [FixedIn] finds it.
//
// If your own error type has a text that varies, embed a Fixed under an unexported name, that
// of an alias, and override Error. Your type then exports nothing new.
type Fixed string

// Error returns the text.
func (f Fixed) Error() string { return string(f) }

func (f Fixed) fixed() Fixed { return f }

// FixedIn returns the first Fixed that err is, wraps, or embeds.
func FixedIn(err error) (text Fixed, found bool) {
	type holder interface {
		error
		fixed() Fixed
	}
	if h, ok := errors.AsType[holder](err); ok {
		return h.fixed(), true
	}
	return "", false
}
