package webhookcfg

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The descriptions of a refused identifier: for the default syntax, and for the host's.
const (
	rulePlainEntity = "An identifier is 1 to 128 of the characters A-Z a-z 0-9 . _ ~ : @ - and neither . nor .."
	ruleHostEntity  = "The identifier is malformed for this service"
)

// maxEntity is the longest identifier of the default syntax, in bytes.
const maxEntity = 128

// plainEntity is the default syntax of identifiers: 1 to 128 of the characters A-Z a-z 0-9 .
// _ ~ : @ -, but not "." or "..". You'd have to escape anything else in a path.
func plainEntity(id string) bool {
	if len(id) > maxEntity || isDots(id) {
		return false
	}
	for i := range len(id) {
		if !entityChars[id[i]] {
			return false
		}
	}
	return true
}

// entityChars are the characters of the default syntax.
var entityChars = func() (table [256]bool) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			table[c] = true
		case c == '.', c == '_', c == '~', c == ':', c == '@', c == '-':
			table[c] = true
		}
	}
	return table
}()

// isDots reports whether id is empty, "." or "..", which cleaning a path removes.
func isDots(id string) bool { return id == "" || id == "." || id == ".." }

// safeSegment reports whether id is a single segment of a path, and stays the same when
// somebody cleans the path. This must hold for all identifiers, also with the host's own
// syntax.
func safeSegment(id string) bool {
	return !isDots(id) && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(c rune) bool { return c == '/' || c == '\\' || unicode.IsControl(c) })
}

// entitySyntax decides which identifiers are well-formed.
type entitySyntax struct {
	valid func(id string) bool
	rule  string // the description if it refuses one
}

// newEntitySyntax returns the default syntax, or the host's syntax as far as safeSegment
// allows.
func newEntitySyntax(host func(id string) bool) entitySyntax {
	if host == nil {
		return entitySyntax{plainEntity, rulePlainEntity}
	}
	return entitySyntax{func(id string) bool { return safeSegment(id) && host(id) }, ruleHostEntity}
}

// scope returns the scope of an entity, if its identifier is valid.
func (s entitySyntax) scope(id string) (Scope, *apiError) {
	if !s.valid(id) {
		return Scope{}, invalidRequest(s.rule)
	}
	return Entity(id), nil
}
