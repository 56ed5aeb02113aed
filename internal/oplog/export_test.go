package oplog

import (
	"context"
	"log/slog"
	"math"

	"example.com/go-webhookcfg/webhookcfg"
)

// HeaderLen is the length of the header, HeaderCopyLen that of one of its copies.
const (
	HeaderLen     = headerLen
	HeaderCopyLen = headerCopyLen
)

// MaxFinalCopy bounds the bytes that a compaction copies while writers wait.
const MaxFinalCopy = maxFinalCopy

// ApplyStep is how many changes of a batch are applied at a time.
const ApplyStep = applyStep

// SkipChecksums returns options with which any checksum is accepted.
func SkipChecksums(o Options) Options {
	o.skipChecksums = true
	return o
}

// CountYields returns options that make the commit loop count its yields.
func CountYields(o Options, n *int) Options {
	o.yield = func() { *n++ }
	return o
}

// Join starts an Append. It ends when done is closed or when you call withdraw.
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

// Decode is the inverse of Encode.
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

// Version is the present version of the format.
const Version = version

// EncodeHeaderCopy returns a copy of the header of a version, with the end of its line.
func EncodeHeaderCopy(version int, synced int64) []byte {
	return appendHeaderCopy(nil, version, synced)
}

// HeaderVersions returns the versions of the two copies of the header, 0 for one that is not
// as it was written.
func HeaderVersions(content []byte) (versions [2]int) {
	for i := range versions {
		versions[i], _ = readHeaderCopy(content, int64(i))
	}
	return versions
}

// EncodeHeader returns the header of a new file.
func EncodeHeader(synced int64) []byte { return appendHeader(nil, synced) }

// Resume opens the file of a log and returns functions that append lines to it, and that
// seal it, whatever follows the lines.
func Resume(file File, name string, state State) (add func(lines []byte) error, seal func() error, err error) {
	r, err := newReplay(file, name)
	if err != nil {
		return nil, nil, err
	}
	if err := r.into(context.Background(), state.ApplyAll, slog.New(slog.DiscardHandler)); err != nil {
		return nil, nil, err
	}
	f, err := r.repair()
	add = func(lines []byte) error {
		written, err := f.append(lines)
		f.end += int64(written)
		return err
	}
	seal = func() error {
		f.preallocated = math.MaxInt64
		return f.seal()
	}
	return add, seal, err
}
