// Package strictjson decodes a JSON object (RFC 8259) of strings. You pass the keys that it
// can have. It refuses ambiguous input.
//
// You can't use encoding/json.Unmarshal for this: it ignores the case of keys, takes the last
// one if a key is repeated, treats null as absent, and replaces invalid UTF-8 and unpaired
// surrogates by U+FFFD. With its Decoder's Token method you can handle the first three
// yourself, but that's slower. A POST served in process takes 14.4 µs and 57 allocations with
// it, and 7.6 µs and 27 with this package.
package strictjson

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The errors of [Decode].
var (
	ErrEncoding   = errors.New("strictjson: invalid UTF-8 or byte order mark")
	ErrSyntax     = errors.New("strictjson: not exactly one JSON object")
	ErrUnknownKey = errors.New("strictjson: unknown key")
	ErrRepeated   = errors.New("strictjson: repeated key")
	ErrNotString  = errors.New("strictjson: value is not a string")
	ErrSurrogate  = errors.New("strictjson: unpaired surrogate")
)

// Field is a member that the object can have.
type Field struct {
	// Key is compared byte for byte, after its escapes are replaced (RFC 8259 §8.3).
	Key string
	// Value is the string under the key. Present reports whether the object has the key.
	Value   string
	Present bool
}

// Decode reads an object from data into the fields. There can be white space around it, but
// nothing else. An unknown key, a repeated key or a value that isn't a string is an error.
// After an error, the fields have the members in front of it.
func Decode(data []byte, fields []Field) error {
	if !utf8.Valid(data) || bytes.HasPrefix(data, []byte("\uFEFF")) {
		return ErrEncoding
	}
	p := parser{data}
	if err := p.object(fields); err != nil {
		return err
	}
	if p.space(); len(p.rest) > 0 {
		return ErrSyntax
	}
	return nil
}

// parser reads valid UTF-8 from its start.
type parser struct{ rest []byte }

func (p *parser) object(fields []Field) error {
	if !p.token('{') {
		return ErrSyntax
	}
	if p.token('}') {
		return nil
	}
	for {
		if err := p.member(fields); err != nil || p.token('}') {
			return err
		}
		if !p.token(',') {
			return ErrSyntax
		}
	}
}

func (p *parser) member(fields []Field) error {
	raw, ok := p.quoted()
	if !ok || !p.token(':') {
		return ErrSyntax
	}
	key, err := unescape(raw)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == string(key) })
	switch {
	case i < 0:
		return ErrUnknownKey
	case fields[i].Present:
		return ErrRepeated
	}
	value, err := p.value()
	fields[i].Value, fields[i].Present = string(value), err == nil
	return err
}

func (p *parser) value() ([]byte, error) {
	if p.space(); len(p.rest) > 0 && p.rest[0] != '"' {
		return nil, ErrNotString
	}
	raw, ok := p.quoted()
	if !ok {
		return nil, ErrSyntax
	}
	return unescape(raw)
}

// space skips white space.
func (p *parser) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t' || p.rest[0] == '\n' || p.rest[0] == '\r') {
		p.rest = p.rest[1:]
	}
}

// token skips white space and then c, if c is there.
func (p *parser) token(c byte) bool {
	if p.space(); len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// The escapes of two characters and their values (RFC 8259 §7).
const (
	shortEscapes = `"\/bfnrt`
	shortValues  = "\"\\/\b\f\n\r\t"
)

// quoted reads a string and returns the bytes between its quotes. It validates the escapes,
// but doesn't replace them.
func (p *parser) quoted() (raw []byte, ok bool) {
	if !p.token('"') {
		return nil, false
	}
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			raw, p.rest = p.rest[:i], p.rest[i+1:]
			return raw, true
		case c < 0x20:
			return nil, false
		case c == '\\':
			n := escapeLen(p.rest[i:])
			if n == 0 {
				return nil, false
			}
			i += n - 1
		}
	}
	return nil, false
}

// escapeLen returns the length of the escape at the start of b, or 0 if there is none.
func escapeLen(b []byte) int {
	if len(b) >= 2 && strings.IndexByte(shortEscapes, b[1]) >= 0 {
		return 2
	}
	if _, ok := hexEscape(b); ok {
		return 6
	}
	return 0
}

// hexEscape reads the \uXXXX at the start of b.
func hexEscape(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// unescape replaces the escapes in the bytes between quotes. The escapes must be valid.
func unescape(raw []byte) ([]byte, error) {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw, nil
	}
	var text []byte
	for ; i >= 0; i = bytes.IndexByte(raw, '\\') {
		text, raw = append(text, raw[:i]...), raw[i:]
		unit, ok := hexEscape(raw)
		if !ok {
			text, raw = append(text, shortValues[strings.IndexByte(shortEscapes, raw[1])]), raw[2:]
			continue
		}
		raw = raw[6:]
		if utf16.IsSurrogate(unit) {
			low, _ := hexEscape(raw)
			if unit = utf16.DecodeRune(unit, low); unit == utf8.RuneError {
				return nil, ErrSurrogate
			}
			raw = raw[6:]
		}
		text = utf8.AppendRune(text, unit)
	}
	return append(text, raw...), nil
}
