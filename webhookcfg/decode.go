package webhookcfg

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The rules that a body can break, as the caller reads them.
const (
	ruleObject    = "The body must be exactly one JSON object and nothing after it"
	ruleUTF8      = "The body must be valid UTF-8 without a byte order mark"
	ruleSurrogate = "A string in the body has an unpaired surrogate"
	ruleRepeated  = "A key of the body is repeated"
	ruleString    = "Every value in the body must be a string; leave a key out rather than send null"
	ruleURLNeeded = "The key webhook_url is required"
)

var byteOrderMark = []byte("\uFEFF")

// setBody is what the body of a set says. An identifier that is present is
// never empty: absent means all entities, and nothing else does.
type setBody struct {
	entity    string
	hasEntity bool
	url       string
	hasURL    bool
}

// decodeSet reads the body of a set strictly. It is written by hand because
// encoding/json folds the case of keys, lets the last of repeated keys win, takes
// null for absent and mends broken UTF-8: each of them can turn a request for one
// entity into one for all.
func decodeSet(data []byte, idKey string) (setBody, *fault) {
	if !utf8.Valid(data) || bytes.HasPrefix(data, byteOrderMark) {
		return setBody{}, invalidRequest(ruleUTF8)
	}
	s := scanner{rest: data}
	body, f := s.object(idKey)
	if f != nil {
		return setBody{}, f
	}
	if s.space(); len(s.rest) > 0 {
		return setBody{}, invalidRequest(ruleObject)
	}
	if !body.hasURL {
		return setBody{}, invalidRequest(ruleURLNeeded)
	}
	return body, nil
}

// scanner walks over valid UTF-8 from its beginning.
type scanner struct{ rest []byte }

func (s *scanner) object(idKey string) (body setBody, f *fault) {
	if !s.token('{') {
		return body, invalidRequest(ruleObject)
	}
	if s.token('}') {
		return body, nil
	}
	for {
		if f := s.member(&body, idKey); f != nil {
			return body, f
		}
		if s.token('}') {
			return body, nil
		}
		if !s.token(',') {
			return body, invalidRequest(ruleObject)
		}
	}
}

func (s *scanner) member(body *setBody, idKey string) *fault {
	s.space()
	key, ok := s.quoted()
	if !ok || !s.token(':') {
		return invalidRequest(ruleObject)
	}
	value, has := &body.url, &body.hasURL
	switch string(key) {
	case "webhook_url":
	case idKey:
		value, has = &body.entity, &body.hasEntity
	default:
		return invalidRequest("The body has an unknown key; known are webhook_url and " + idKey)
	}
	if *has {
		return invalidRequest(ruleRepeated)
	}
	*has = true
	var f *fault
	*value, f = s.stringValue()
	return f
}

func (s *scanner) stringValue() (string, *fault) {
	s.space()
	if len(s.rest) == 0 {
		return "", invalidRequest(ruleObject)
	}
	if s.rest[0] != '"' {
		return "", invalidRequest(ruleString)
	}
	raw, ok := s.quoted()
	if !ok {
		return "", invalidRequest(ruleObject)
	}
	return unescape(raw)
}

// space skips the white space of JSON.
func (s *scanner) space() {
	for len(s.rest) > 0 {
		switch s.rest[0] {
		case ' ', '\t', '\n', '\r':
			s.rest = s.rest[1:]
		default:
			return
		}
	}
}

// token skips white space and then c, if c is there.
func (s *scanner) token(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// quoted reads a JSON string and returns what stands between its quotes, the
// escapes checked but left as they are.
func (s *scanner) quoted() (raw []byte, ok bool) {
	rest := s.rest
	if len(rest) == 0 || rest[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			s.rest = rest[i+1:]
			return rest[1:i], true
		case c < 0x20:
			return nil, false
		case c == '\\':
			n := escapeLen(rest[i:])
			if n == 0 {
				return nil, false
			}
			i += n - 1
		}
	}
	return nil, false
}

// escapeLen returns the length of the escape that b begins with, 0 if it is none
// of RFC 8259 §7.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if strings.IndexByte(`"\/bfnrt`, b[1]) >= 0 {
		return 2
	}
	if _, ok := hexEscape(b); ok {
		return 6
	}
	return 0
}

// hexEscape reads a \uXXXX.
func hexEscape(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

// unescape returns the text that the inside of a JSON string stands for.
func unescape(raw []byte) (string, *fault) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), nil
	}
	text := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		if raw[0] != '\\' {
			text, raw = append(text, raw[0]), raw[1:]
			continue
		}
		unit, isHex := hexEscape(raw)
		if !isHex {
			text, raw = append(text, simpleEscape(raw[1])), raw[2:]
			continue
		}
		raw = raw[6:]
		if utf16.IsSurrogate(unit) {
			low, _ := hexEscape(raw)
			if unit = utf16.DecodeRune(unit, low); unit == utf8.RuneError {
				return "", invalidRequest(ruleSurrogate)
			}
			raw = raw[6:]
		}
		text = utf8.AppendRune(text, unit)
	}
	return string(text), nil
}

func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return c
	}
}
