package oplog

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

// HeaderLen is the length of the header.
const HeaderLen = headerLen

// MaxFinalCopy bounds the bytes that a compaction copies while writers wait.
const MaxFinalCopy = maxFinalCopy

// ApplyStep is how many changes of a batch are applied at a time.
const ApplyStep = applyStep

// SkipChecksums returns options with which any checksum is accepted.
func SkipChecksums(o Options) Options {
	o.skipChecksums = true
	return o
}

// Join starts an Append. It ends when done is closed, or with withdraw.
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

// EncodeCheckpoint is Encode for a checkpoint.
func EncodeCheckpoint(synced int64) []byte {
	line := appendCheckpoint(nil, synced)
	return line[:len(line)-1]
}

// Decode is the inverse of Encode and EncodeCheckpoint; a checkpoint has the zero Change.
func Decode(line []byte) (c webhookcfg.Change, synced int64, ok bool) {
	rec, ok := decode(line)
	return rec.change, rec.synced, ok
}

// Seal appends the checksum to the body of a line.
func Seal(body []byte) []byte {
	line := appendChecksum(append([]byte(nil), body...), 0)
	return line[:len(line)-1]
}

// IsCutShort reports whether line may be the start of a record.
func IsCutShort(line []byte) bool { return isCutShort(line) }

// EncodeHeader returns the header, with the end of its line.
func EncodeHeader(synced int64) []byte { return appendHeader(nil, synced) }
