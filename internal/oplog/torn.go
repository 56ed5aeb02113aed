package oplog

import "bytes"

// maxTornTail is the most that a crash can leave after the last record: a batch that ends
// with a line of maximum length, and the preallocated space.
const maxTornTail = maxBatch + maxLine + maxPreallocated

// classifyTail decides whether the bytes after the last record are a torn tail or damage. The
// last record ends at the offset at, and the header covers everything before synced. For a
// torn tail, which a crash during the write or sync of one batch can leave, the reason is "".
func classifyTail(rest []byte, at, synced int64) (reason string) {
	// A hole is at least a sector long, except at the ends of the batch, where a sector can
	// have as little as one byte of the batch.
	fragment, after := cutBlank(rest)
	isLine := len(fragment) < len(rest) && rest[len(fragment)] == '\n'
	switch {
	case at < synced:
		return "the line is not intact, although the header covers it"
	case len(rest) > maxTornTail:
		return "more bytes follow than an interrupted write can leave"
	case sealsMore(after, at):
		return "the line is not intact, although it was on disk when a later one was written"
	case !isCutShort(fragment), isLine && checksumHolds(fragment):
		return "the line is neither a record nor the start of one"
	case len(fragment) > 0 && len(after) > 0 && !isBlank(after[0]):
		return "the line ends early in front of another one"
	}
	return ""
}

// sealsMore reports whether any of the lines shows, by its "synced", that the byte at the
// offset at was already on disk.
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

// isBlank reports whether you may find c in place of a byte that didn't reach the disk: it's
// a zero, or a preallocated end of line.
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

// checkTail reads the bytes after the last record, and returns an error if they're damage.
func (r *replay) checkTail() error {
	rest := make([]byte, min(r.size-r.end, maxTornTail+1))
	if err := readFull(r.file, rest, r.end); err != nil {
		return err
	}
	if reason := classifyTail(rest, r.end, r.header.synced); reason != "" {
		return r.damaged(reason)
	}
	r.isTorn = len(trimBlank(rest)) > 0
	return nil
}

// repair cuts the file after the last record, seals it, and upgrades it to the present
// version. You can read records that aren't on disk yet. So repair writes the last batch once
// more, unless the header covers it, and only then lets the header cover it.
func (r *replay) repair() (logFile, error) {
	f := logFile{file: r.file, logHeader: r.header, end: r.end, checked: r.last, records: r.records}
	if f.synced < f.end {
		if err := f.rewriteTail(max(r.batchStart, f.synced)); err != nil {
			return f, err
		}
	}
	if err := f.seal(); err != nil {
		return f, err
	}
	return f, f.upgrade()
}
