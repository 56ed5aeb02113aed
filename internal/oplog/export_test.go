package oplog

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

// HeaderLen is the length of the first line.
const HeaderLen = headerLen

// MaxFinalCopy is how much a compaction copies while writers wait.
const MaxFinalCopy = maxFinalCopy

// ApplyStep is how many changes of a group are applied at a time.
const ApplyStep = applyStep

// SkipChecksums has checksums taken for right.
func SkipChecksums(o Options) Options {
	o.skipChecksums = true
	return o
}

// Join begins an Append. It is over when done is closed, or given up by withdraw.
func Join(ctx context.Context, l *Log, c webhookcfg.Change) (withdraw func(), done <-chan struct{}, err error) {
	c, body, err := encode(nil, c)
	if err != nil {
		return nil, nil, err
	}
	g, i, err := l.join(ctx, c, body)
	if err != nil {
		return nil, nil, err
	}
	return func() { l.withdraw(g, i) }, g.done, nil
}

// Encode returns the line of a record, without its end.
func Encode(c webhookcfg.Change, synced int64) ([]byte, error) {
	_, body, err := encode(nil, c)
	if err != nil {
		return nil, err
	}
	line := appendLine(nil, body, synced)
	return line[:len(line)-1], nil
}

// EncodeCheckpoint is Encode for a mark.
func EncodeCheckpoint(synced int64) []byte {
	line := appendCheckpoint(nil, synced)
	return line[:len(line)-1]
}

// Decode is the inverse of Encode and EncodeCheckpoint; a mark has the zero Change.
func Decode(line []byte) (c webhookcfg.Change, synced int64, ok bool) {
	return NewDecode(0)(line)
}

// NewDecode returns a Decode that is for so many lines, one after the other.
func NewDecode(lines int64) func(line []byte) (c webhookcfg.Change, synced int64, ok bool) {
	d := newDecoder(lines)
	return func(line []byte) (webhookcfg.Change, int64, bool) {
		rec, ok := d.decode(line)
		return rec.change, rec.synced, ok
	}
}

// Seal appends the checksum to the body of a line.
func Seal(body []byte) []byte {
	line := appendChecksum(append([]byte(nil), body...), 0)
	return line[:len(line)-1]
}

// IsCutShort reports whether line could go on to be a record.
func IsCutShort(line []byte) bool { return isCutShort(line) }

// EncodeHeader returns the first line, with its end.
func EncodeHeader(synced int64) []byte { return appendHeader(nil, synced) }
