package oplog

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg"
)

// maxLine is how long a line can be, so that a reader's memory is bounded. The handler only
// accepts much shorter changes.
const maxLine = 1 << 20

// Every line ends with these two keys. crcLen is the length from the second one to the
// closing brace.
const (
	syncedKey = `,"synced":`
	crcKey    = `,"crc":"`
	crcLen    = len(crcKey) + 8 + len(`"}`)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxLineTail is how long a line can be after its body, with the end of the line.
const maxLineTail = len(syncedKey) + len("9223372036854775807") + crcLen + 1

// encode appends the body of c's line to b: everything in front of the key "synced", since
// its value isn't known before the line is written. It returns c as it will be read back.
func encode(b []byte, c webhookcfg.Change) (webhookcfg.Change, []byte, error) {
	if err := c.Validate(); err != nil {
		return c, nil, err
	}
	c.Time = c.Time.UTC().Truncate(time.Microsecond)
	entity, url := c.Scope.Entity(), c.URL.Reveal()
	switch {
	case len(c.Client)+len(entity)+len(url) > maxLine/8:
		return c, nil, fmt.Errorf("%w: change of more than %d bytes", webhookcfg.ErrInvalidArgument, maxLine/8)
	case !utf8.ValidString(c.Client), !utf8.ValidString(entity), !utf8.ValidString(url):
		return c, nil, fmt.Errorf("%w: change with invalid UTF-8", webhookcfg.ErrInvalidArgument)
	case c.Time.Year() < 0, c.Time.Year() > 9999:
		return c, nil, fmt.Errorf("%w: change outside the years 0 to 9999", webhookcfg.ErrInvalidArgument)
	}
	return c, appendBody(b, c), nil
}

// appendLine appends the line of a body.
func appendLine(b, body []byte, synced int64) []byte {
	start := len(b)
	return appendChecksum(appendSynced(append(b, body...), synced), start)
}

func appendBody(b []byte, c webhookcfg.Change) []byte {
	if c.URL.IsZero() {
		b = append(b, `{"op":"unset","client":`...)
	} else {
		b = append(b, `{"op":"set","client":`...)
	}
	b = appendString(b, c.Client)
	if c.Scope.IsAll() {
		b = append(b, `,"scope":"all"`...)
	} else {
		b = append(b, `,"entity":`...)
		b = appendString(b, c.Scope.Entity())
	}
	if !c.URL.IsZero() {
		b = append(b, `,"url":`...)
		b = appendString(b, c.URL.Reveal())
	}
	b = append(b, `,"time":"`...)
	b = appendTime(b, c.Time)
	return append(b, '"')
}

// microLayout is for times with a fraction of a second.
const microLayout = "2006-01-02T15:04:05.000000Z07:00"

// appendTime appends a time in UTC. A whole second has no fraction, as in version 1 of the
// format, so each time has one spelling.
func appendTime(b []byte, t time.Time) []byte {
	layout := microLayout
	if t.Nanosecond() == 0 {
		layout = time.RFC3339
	}
	return t.AppendFormat(b, layout)
}

func appendSynced(b []byte, synced int64) []byte {
	b = append(b, syncedKey...)
	return strconv.AppendInt(b, synced, 10)
}

// appendChecksum ends the line that starts at start with its checksum.
func appendChecksum(b []byte, start int) []byte {
	crc := crc32.Checksum(b[start:], castagnoli)
	b = append(b, crcKey...)
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[crc>>shift&0xF])
	}
	return append(b, "\"}\n"...)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. It escapes only what JSON requires, so a string
// has one valid spelling in a log.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := range len(s) {
		if isPlain[s[i]] {
			continue
		}
		b = append(b, s[done:i]...)
		if done = i + 1; s[i] < 0x20 {
			b = append(b, '\\', 'u', '0', '0', hexDigits[s[i]>>4], hexDigits[s[i]&0xF])
		} else {
			b = append(b, '\\', s[i])
		}
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

// isPlain tells you which bytes don't need an escape in a JSON string.
var isPlain = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return plain
}()
