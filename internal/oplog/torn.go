package oplog

import "bytes"

// maxTornTail bounds what a crash can leave after the last record: a batch whose last
// line has the maximum length, and the preallocated space.
const maxTornTail = maxBatch + maxLine + maxPreallocated

// classifyTail reports whether the bytes after the last record, which ends at the offset
// at, are a torn tail or damage. The reason is "" for a torn tail: a crash during the
// write or sync of one batch can leave it. The header covers everything before synced.
func classifyTail(rest []byte, at, synced int64) (reason string) {
	// A hole is at least a sector, but at either end of the batch it can be as little as
	// the one byte of the batch in that sector.
	fragment, after := cutBlank(rest)
	isLine := len(fragment) < len(rest) && rest[len(fragment)] == '\n'
	switch {
	case at < synced:
		return "the header covers more than the intact lines"
	case len(rest) > maxTornTail:
		return "more follows than one write can leave behind"
	case sealsMore(after, at):
		return "a later line seals this one"
	case !isCutShort(fragment), isLine && checksumHolds(fragment):
		return "the line is neither a record nor the start of one"
	case len(fragment) > 0 && len(after) > 0 && !isBlank(after[0]):
		return "the line ends early in front of another one"
	}
	return ""
}

// sealsMore reports whether one of the lines was written when the byte at the offset at
// was already on disk.
func sealsMore(lines []byte, at int64) bool {
	for lines = trimBlank(lines); len(lines) > 0; lines = trimBlank(lines) {
		var line []byte
		line, lines = cutBlank(lines)
		if rec, ok := decode(line); ok && rec.synced > at {
			return true
		}
	}
	return false
}

// isBlank reports whether c can be in the place of a byte that did not reach the disk: a
// zero, or a preallocated end of line.
func isBlank(c byte) bool { return c == 0 || c == '\n' }

const blank = "\x00\n"

// cutBlank splits b around its first blank byte.
func cutBlank(b []byte) (before, after []byte) {
	if i := bytes.IndexAny(b, blank); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// trimBlank removes the blank bytes at the start of b.
func trimBlank(b []byte) []byte { return bytes.TrimLeft(b, blank) }
