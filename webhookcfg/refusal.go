package webhookcfg

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Refusal is a reason of your own to refuse a change, such as a limit of the client's plan.
// List yours in [Options.Refusals]. When [Options.CheckChange] or your [Store] returns one of
// them, perhaps wrapped, nothing changes, and the client gets 403 with its Code and
// Description. What you wrap around it goes to [Event.Err].
//
// A limit that must hold belongs where the change is made, because two concurrent requests can
// both find the last place free in [Options.CheckChange]. Package
// [example.com/go-webhookcfg/store/sqlstore] has triggers for that. Around a store of one process,
// a lock is enough, as in the example. A store in etcd can't promise such a limit.
type Refusal struct {
	// Code is the error code in the response, such as "too_many_overrides". It has up to 64
	// of the characters a-z 0-9 _, starts with a letter, and differs from the handler's own
	// codes.
	Code string
	// Description is the text for the client. It has 1 to 256 characters of printable ASCII,
	// without quotes and backslashes.
	Description string
}

// Error returns the code and the description.
func (r Refusal) Error() string { return "webhookcfg: refused: " + r.Code + ": " + r.Description }

const maxRefusalText = 256

var refusalCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// checkRefusals refuses a list in which not every Refusal is a response that clients can tell
// from all others.
func (o *Options) checkRefusals() error {
	if o.CheckChange != nil && len(o.Refusals) == 0 {
		return errors.New("CheckChange without Refusals can't refuse anything: list what it returns")
	}
	taken := make(map[string]bool)
	for _, c := range codes {
		taken[c.name] = true
	}
	for _, r := range o.Refusals {
		switch {
		case !refusalCode.MatchString(r.Code):
			return fmt.Errorf("invalid Refusal: the code %q is not 1 to 64 of a-z 0-9 _ with a letter first", r.Code)
		case taken[r.Code]:
			return fmt.Errorf("invalid Refusal: the code %q is the handler's own, or in the list twice", r.Code)
		case r.Description == "" || len(r.Description) > maxRefusalText || strings.ContainsFunc(r.Description, isUnsafeInText):
			return fmt.Errorf("invalid Refusal: the description of %q is not 1 to %d characters of printable ASCII without quotes and backslashes", r.Code, maxRefusalText)
		}
		taken[r.Code] = true
	}
	return nil
}

// isUnsafeInText reports whether a character needs escaping in a response or in a header.
func isUnsafeInText(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }

// refused classifies an error that holds a [Refusal], and returns nil for others.
func (o *operation) refused(err error) *apiError {
	r, ok := errors.AsType[Refusal](err)
	switch {
	case !ok:
		return nil
	case !slices.Contains(o.h.options.Refusals, r):
		return serverError(fmt.Errorf("a Refusal that isn't in Options.Refusals: %w", err))
	}
	e := &apiError{code: code{http.StatusForbidden, r.Code}, description: r.Description}
	if err != r { // it says more than the Refusal
		e.cause = err
	}
	return e
}
