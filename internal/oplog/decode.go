package oplog

import (
	"hash/crc32"
	"hash/maphash"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// record is what a line says.
type logRecord struct {
	// change is the zero Change in a mark.
	change       webhookcfg.Change
	isCheckpoint bool
	// synced is the offset up to which the file was on disk when the line was written.
	synced int64
}

// decoder reads lines. It accepts exactly what the encoder writes: each record
// has one spelling. encoding/json would be four times slower, and lax about
// keys that are repeated, unknown or spelled in another case. The zero value is for
// few lines.
type decoder struct {
	clients       interner[string]
	urls          interner[egress.URL]
	skipChecksums bool
}

// newDecoder returns a decoder for so many lines, and in proportion to them.
func newDecoder(lines int64) decoder {
	return decoder{
		clients: make(interner[string], min(lines, maxInterned)),
		urls:    make(interner[egress.URL], min(lines, maxInterned)),
	}
}

// decode reads a whole line, without its end.
func (d *decoder) decode(line []byte) (logRecord, bool) {
	if !d.skipChecksums && !checksumHolds(line) {
		return logRecord{}, false
	}
	s := lineScanner{rest: line[:max(0, len(line)-crcLen)], clients: d.clients, urls: d.urls}
	rec, ok := s.record()
	return rec, ok && len(s.rest) == 0 && utf8.Valid(line)
}

// checksumHolds reports whether the checksum at the end of a line is that of
// everything before its key.
func checksumHolds(line []byte) bool {
	if len(line) < crcLen {
		return false
	}
	body, tail := line[:len(line)-crcLen], lineScanner{rest: line[len(line)-crcLen:]}
	want, ok := tail.crc()
	return ok && crc32.Checksum(body, castagnoli) == want
}

// isCutShort reports whether fragment could be continued to a record or is one,
// all but its end of line: what a torn write leaves of a line.
func isCutShort(fragment []byte) bool {
	s := lineScanner{rest: fragment}
	if _, ok := s.record(); ok {
		if _, ok := s.crc(); ok {
			return len(s.rest) == 0 && checksumHolds(fragment)
		}
	}
	return s.short
}

// scanner walks over one line, or over what there is of it.
type lineScanner struct {
	rest    []byte
	clients interner[string]
	urls    interner[egress.URL]
	// short says that the line ended where more of it was expected.
	short bool
}

// record reads all but the checksum.
func (s *lineScanner) record() (rec logRecord, ok bool) {
	if s.literal(checkpointBody) {
		rec.isCheckpoint = true
	} else if rec.change, ok = s.change(); !ok {
		return logRecord{}, false
	}
	if !s.literal(syncedKey) {
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
	raw, escaped, ok := s.quoted()
	if !ok {
		return c, false
	}
	client := s.clients.intern(raw, escaped, func(text string) string { return text })
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
		c = webhookcfg.Set(client, scope, url)
	} else {
		c = webhookcfg.Unset(client, scope)
	}
	c.Time = when
	return c, c.Validate() == nil
}

// scope reads one of the two keys that say what a change reaches. That one of
// them is missing never means "all".
func (s *lineScanner) scope() (scope webhookcfg.Scope, ok bool) {
	if s.literal(`,"scope":"all"`) {
		return webhookcfg.All(), true
	}
	if !s.literal(`,"entity":`) {
		return scope, false
	}
	raw, escaped, ok := s.quoted()
	return webhookcfg.Entity(unquote(raw, escaped)), ok
}

func (s *lineScanner) url() (url egress.URL, ok bool) {
	if !s.literal(`,"url":`) {
		return url, false
	}
	raw, escaped, ok := s.quoted()
	if !ok {
		return url, false
	}
	return s.urls.intern(raw, escaped, egress.NewURL), true
}

// literal skips text, if it comes next.
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

// quoted reads a string and returns what stands between its quotes, and whether
// there are escapes in it.
func (s *lineScanner) quoted() (raw []byte, escaped, ok bool) {
	if !s.literal(`"`) {
		return nil, false, false
	}
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case isPlain[c]:
		case c == '"':
			raw, s.rest = s.rest[:i], s.rest[i+1:]
			return raw, escaped, true
		case c == '\\':
			n := escapeLen(s.rest[i:])
			if n == 0 {
				s.short = len(s.rest)-i < len(`\u0000`)
				return nil, false, false
			}
			escaped = true
			i += n - 1
		default:
			return nil, false, false
		}
	}
	s.short = true
	return nil, false, false
}

// escapeLen returns the length of the escape that b begins with, 0 if the
// encoder writes none like it.
func escapeLen(b []byte) int {
	if len(b) >= 2 && (b[1] == '"' || b[1] == '\\') {
		return 2
	}
	if len(b) >= 6 && string(b[1:4]) == "u00" && (b[4] == '0' || b[4] == '1') && unhex[b[5]] <= 0xF {
		return 6
	}
	return 0
}

// unhex is the value of each hexadecimal digit, and above 0xF for all other bytes.
var unhex = func() (values [256]uint8) {
	for c := range values {
		values[c] = 0xFF
	}
	for value, c := range []byte(hexDigits) {
		values[c] = uint8(value)
	}
	return values
}()

// unquote returns the text that the inside of a string stands for.
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

// maxInterned is how many texts an interner has places for at most.
const maxInterned = 1 << 13

// interner remembers what was made of texts that were read lately, so that one that
// comes again takes no more memory: a client has many records, and many records have
// the same URL. Nil remembers nothing.
type interner[V any] []interned[V]

type interned[V any] struct {
	hash  uint64
	text  string
	value V
}

// seed is that of the hashes by which texts are found.
var seed = maphash.MakeSeed()

// intern returns what is to be made of the text that the inside of a string stands for.
func (in interner[V]) intern(raw []byte, escaped bool, of func(text string) V) V {
	if len(in) == 0 || escaped {
		return of(unquote(raw, escaped))
	}
	hash := maphash.Bytes(seed, raw)
	at := &in[hash%uint64(len(in))]
	if at.hash != hash || at.text != string(raw) {
		text := string(raw)
		*at = interned[V]{hash, text, of(text)}
	}
	return at.value
}

// time reads the key "time" with its value, a time in UTC by RFC 3339, to the second.
func (s *lineScanner) time() (t time.Time, ok bool) {
	if !s.literal(`,"time":"`) {
		return t, false
	}
	const length = len("2006-01-02T15:04:05Z")
	if len(s.rest) < length {
		s.short = true
		return t, false
	}
	if t, ok = parseTime(s.rest[:length]); !ok {
		return t, false
	}
	s.rest = s.rest[length:]
	return t, s.literal(`"`)
}

func parseTime(b []byte) (t time.Time, ok bool) {
	if b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[19] != 'Z' {
		return t, false
	}
	year, month, day := decimal(b[:4]), decimal(b[5:7]), decimal(b[8:10])
	hour, minute, second := decimal(b[11:13]), decimal(b[14:16]), decimal(b[17:19])
	if min(year, month-1, day-1, hour, minute, second) < 0 || month > 12 || hour > 23 || max(minute, second) > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day // a day that the month does not have is one of the next
}

// decimal returns the number that digits say, -1 if not all are digits.
func decimal(digits []byte) (n int) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// number reads a decimal number without leading zeros.
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

// crc reads the checksum with its key, and the end of the line.
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
