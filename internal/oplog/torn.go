package oplog

import "bytes"

// maxTornTail bounds what a crash can leave behind the last record: a group, its
// last entry as long as it can be, and room.
const maxTornTail = maxBatch + maxLine + maxPreallocated

// judge decides what the bytes are that follow the last record, which ends at the
// offset at. It returns "" for what a crash can leave of a group whose sync did not
// end, and else why they are damage. Whole is the offset up to which the file
// was on disk when it got its name.
func classifyTail(rest []byte, at, sealedSize int64) (reason string) {
	// A hole is a sector at least, but where the group begins or ends it can be the
	// one byte of the group that is in the sector.
	fragment, after := cutBlank(rest)
	isLine := len(fragment) < len(rest) && rest[len(fragment)] == '\n'
	switch {
	case at < sealedSize:
		return "the file was written whole beyond this line"
	case len(rest) > maxTornTail:
		return "more follows than one write can leave behind"
	case sealsMore(after, at):
		return "a later line says that this one was on disk"
	case !isCutShort(fragment), isLine && checksumHolds(fragment):
		return "the line is no record, nor the beginning of one"
	case len(fragment) > 0 && len(after) > 0 && !isBlank(after[0]):
		return "the line stops short in front of another one"
	}
	return ""
}

// sealsMore reports whether any of the lines was written when what is at the
// given offset had been synced.
func sealsMore(lines []byte, at int64) bool {
	var d decoder
	for lines = trimBlank(lines); len(lines) > 0; lines = trimBlank(lines) {
		var line []byte
		line, lines = cutBlank(lines)
		if rec, ok := d.decode(line); ok && rec.synced > at {
			return true
		}
	}
	return false
}

// isBlank tells the bytes that are where a write did not reach the disk: zeros,
// or the line ends that were written ahead.
func isBlank(c byte) bool { return c == 0 || c == '\n' }

const blank = "\x00\n"

// cutBlank splits b around its first blank byte.
func cutBlank(b []byte) (before, after []byte) {
	if i := bytes.IndexAny(b, blank); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// trimBlank removes the blank bytes that b begins with, large blocks first.
func trimBlank(b []byte) []byte {
	const block = 4 << 10
	for len(b) >= block && bytes.Equal(b[:block], blanks[:block]) {
		b = b[block:]
	}
	return bytes.TrimLeft(b, blank)
}
