package oplog

import (
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// logRecord is the content of a line.
type logRecord struct {
	change webhookcfg.Change
	// synced is the offset before which everything was on disk when the line was written.
	synced int64
}

// decode decodes a line without its end. It accepts only the lines that the encoder writes,
// so each record has one spelling. encoding/json would be four times slower, and it would let
// repeated and unknown keys pass, and keys in another case.
func decode(line []byte) (logRecord, bool) {
	if !checksumHolds(line) {
		return logRecord{}, false
	}
	return decodeUnchecked(line)
}

// decodeUnchecked decodes a line without checking its checksum.
func decodeUnchecked(line []byte) (logRecord, bool) {
	s := lineScanner{rest: line[:max(0, len(line)-crcLen)]}
	rec, ok := s.record()
	return rec, ok && len(s.rest) == 0 && utf8.Valid(line)
}

// checksumHolds reports whether the checksum at the end of a line matches the rest of it.
func checksumHolds(line []byte) bool {
	if len(line) < crcLen {
		return false
	}
	body, tail := line[:len(line)-crcLen], lineScanner{rest: line[len(line)-crcLen:]}
	want, ok := tail.crc()
	return ok && crc32.Checksum(body, castagnoli) == want
}

// isCutShort reports whether fragment can come from a torn write: it's the start of a record,
// or a record without the end of its line.
func isCutShort(fragment []byte) bool {
	s := lineScanner{rest: fragment}
	if _, ok := s.record(); ok {
		if _, ok := s.crc(); ok {
			return len(s.rest) == 0 && checksumHolds(fragment)
		}
	}
	return s.short
}

// lineScanner parses one line, or a fragment of one.
type lineScanner struct {
	rest []byte
	// short reports that the line ended too early.
	short bool
}

// record parses the line up to the checksum.
func (s *lineScanner) record() (rec logRecord, ok bool) {
	if rec.change, ok = s.change(); !ok || !s.literal(syncedKey) {
		return logRecord{}, false
	}
	rec.synced, ok = s.number()
	return rec, ok
}

func (s *lineScanner) change() (c webhookcfg.Change, ok bool) {
	isSet := s.literal(`{"op":"set","client":`)
	if !isSet && !s.literal(`{"op":"unset","client":`) {
		return c, false
	}
	client, ok := s.text()
	if !ok {
		return c, false
	}
	scope, ok := s.scope()
	if !ok {
		return c, false
	}
	var url egress.URL
	if isSet {
		if url, ok = s.url(); !ok {
			return c, false
		}
	}
	when, ok := s.time()
	if !ok {
		return c, false
	}
	if isSet {
		c = webhookcfg.SetChange(client, scope, url)
	} else {
		c = webhookcfg.UnsetChange(client, scope)
	}
	c.Time = when
	return c, c.Validate() == nil
}

// scope parses the key "scope" or "entity". One of them must be there: a missing key must
// never mean "all".
func (s *lineScanner) scope() (scope webhookcfg.Scope, ok bool) {
	if s.literal(`,"scope":"all"`) {
		return webhookcfg.All(), true
	}
	if !s.literal(`,"entity":`) {
		return scope, false
	}
	entity, ok := s.text()
	return webhookcfg.Entity(entity), ok
}

func (s *lineScanner) url() (url egress.URL, ok bool) {
	if !s.literal(`,"url":`) {
		return url, false
	}
	text, ok := s.text()
	return egress.NewURL(text), ok
}

// literal skips text and reports whether it came next.
func (s *lineScanner) literal(text string) bool {
	if len(s.rest) < len(text) {
		s.short = s.short || strings.HasPrefix(text, string(s.rest))
		return false
	}
	if string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

// text parses a string.
func (s *lineScanner) text() (text string, ok bool) {
	if !s.literal(`"`) {
		return "", false
	}
	escaped := false
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case isPlain[c]:
		case c == '"':
			raw := s.rest[:i]
			s.rest = s.rest[i+1:]
			return unquote(raw, escaped), true
		case c == '\\':
			n := escapeLen(s.rest[i:])
			if n == 0 {
				s.short = len(s.rest)-i < len(`\u0000`)
				return "", false
			}
			escaped = true
			i += n - 1
		default:
			return "", false
		}
	}
	s.short = true
	return "", false
}

// escapeLen returns the length of the escape at the start of b. It's 0 if the encoder doesn't
// write this escape.
func escapeLen(b []byte) int {
	if len(b) >= 2 && (b[1] == '"' || b[1] == '\\') {
		return 2
	}
	if len(b) >= 6 && string(b[1:4]) == "u00" && (b[4] == '0' || b[4] == '1') && unhex[b[5]] <= 0xF {
		return 6
	}
	return 0
}

// unhex maps hexadecimal digits to their values, and all other bytes to 0xFF.
var unhex = func() (values [256]uint8) {
	for c := range values {
		values[c] = 0xFF
	}
	for value, c := range []byte(hexDigits) {
		values[c] = uint8(value)
	}
	return values
}()

// unquote returns the text of a quoted string.
func unquote(raw []byte, escaped bool) string {
	if !escaped {
		return string(raw)
	}
	text := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\':
			text = append(text, raw[i])
		case raw[i+1] == 'u':
			text = append(text, unhex[raw[i+4]]<<4|unhex[raw[i+5]])
			i += 5
		default:
			text = append(text, raw[i+1])
			i++
		}
	}
	return string(text)
}

// time parses the key "time" and its value, an RFC 3339 time in UTC. The time can have six
// digits of a fraction, but not all zeros. A whole second has no fraction.
func (s *lineScanner) time() (t time.Time, ok bool) {
	if !s.literal(`,"time":"`) {
		return t, false
	}
	const length = len("2006-01-02T15:04:05")
	if len(s.rest) <= length {
		s.short = true
		return t, false
	}
	micros, text := 0, s.rest[:length]
	if s.rest = s.rest[length:]; s.rest[0] == '.' {
		if micros, ok = s.fraction(); !ok {
			return t, false
		}
	}
	if t, ok = parseTime(text, micros); !ok {
		return t, false
	}
	return t, s.literal(`Z"`)
}

// fraction parses the fraction of a second and returns it in microseconds.
func (s *lineScanner) fraction() (micros int, ok bool) {
	const length = len(".000000")
	if len(s.rest) < length {
		s.short = true
		return 0, false
	}
	micros = decimal(s.rest[1:length])
	s.rest = s.rest[length:]
	return micros, micros > 0
}

func parseTime(b []byte, micros int) (t time.Time, ok bool) {
	if b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return t, false
	}
	year, month, day := decimal(b[:4]), decimal(b[5:7]), decimal(b[8:10])
	hour, minute, second := decimal(b[11:13]), decimal(b[14:16]), decimal(b[17:19])
	if min(year, month-1, day-1, hour, minute, second) < 0 || month > 12 || hour > 23 || max(minute, second) > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	return t, t.Day() == day // time.Date turns a day that the month doesn't have into one of the next month
}

// decimal returns the value of digits, or -1 if there's anything else among them.
func decimal(digits []byte) (n int) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// number parses a decimal number without leading zeros.
func (s *lineScanner) number() (n int64, ok bool) {
	digits := 0
	for digits < len(s.rest) && s.rest[digits]-'0' <= 9 && digits <= 18 {
		n = n*10 + int64(s.rest[digits]-'0')
		digits++
	}
	s.short = digits == len(s.rest)
	if digits == 0 || digits > 18 || digits > 1 && s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[digits:]
	return n, true
}

// crc parses the checksum with its key, and the end of the line.
func (s *lineScanner) crc() (crc uint32, ok bool) {
	if !s.literal(crcKey) {
		return 0, false
	}
	for i := range 8 {
		if i == len(s.rest) {
			s.short = true
			return 0, false
		}
		digit := unhex[s.rest[i]]
		if digit > 0xF {
			return 0, false
		}
		crc = crc<<4 | uint32(digit)
	}
	s.rest = s.rest[8:]
	return crc, s.literal(`"}`)
}
