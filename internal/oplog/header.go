package oplog

import (
	"bytes"
	"fmt"
	"strconv"
)

// The header is two copies of one line. They can differ in their "synced" and, while a log of
// an older version is being opened, in their version. In every version of the format, both
// copies start with headerStart and the number of the version, and the second one starts
// within the first maxHeader bytes.
const (
	headerStart   = `{"format":"webhookcfg log","version":`
	version       = 2
	offsetWidth   = 20
	headerCopyLen = int64(len(headerStart) + len("1") + len(syncedKey) + offsetWidth + crcLen + 1)
	headerLen     = 2 * headerCopyLen
	maxHeader     = 1 << 10
)

// logHeader is the content of a header. A crash can tear the copy that is being rewritten, so
// don't touch the other one before the new one is on disk.
type logHeader struct {
	// lines are both copies, as they are in the file.
	lines [headerLen]byte
	// synced is the offset before which everything is on disk. If both copies are valid, it's
	// the larger one.
	synced int64
	// spare is the copy to write next, 0 or 1.
	spare int64
	// isOld reports that a copy has an older version.
	isOld bool
	// length is headerLen, or that of one copy in a file from the first days of the format.
	length int64
}

// appendHeader appends both copies of the header of a new file.
func appendHeader(b []byte, synced int64) []byte {
	return appendHeaderCopy(appendHeaderCopy(b, version, synced), version, synced)
}

// appendHeaderCopy appends a copy of the header. Its length does not depend on synced.
func appendHeaderCopy(b []byte, version int, synced int64) []byte {
	start := len(b)
	b = fmt.Appendf(b, "%s%d%s%*d", headerStart, version, syncedKey, offsetWidth, synced)
	return appendChecksum(b, start)
}

// readHeader reads the header of a file. In a file that was never finished, no copy is valid,
// because their "synced" is 0.
func readHeader(file File, name string, size int64) (h logHeader, err error) {
	start := make([]byte, min(size, maxHeader))
	if err := readFull(file, start, 0); err != nil {
		return h, err
	}
	copy(h.lines[:], start)
	h.length = headerLen
	for i := range int64(2) {
		v, synced := readHeaderCopy(start, i)
		h.isOld = h.isOld || synced > 0 && v < version
		if synced >= h.synced {
			h.synced, h.spare = synced, 1-i
		}
	}
	if v, _ := readHeaderCopy(start, 0); v == 1 && bytes.HasPrefix(start[headerCopyLen:], []byte(recordStart)) {
		h.length = headerCopyLen
		return h, damaged(name, 2, headerCopyLen, "a development version wrote this file, with one line of header instead of two")
	}
	switch {
	case h.synced > size:
		return h, damaged(name, 1, 0, fmt.Sprintf("the file was cut: it has %d bytes, but the header covers %d", size, h.synced))
	case h.synced >= headerLen:
		return h, nil
	}
	reason := "the file does not start with the header of a log"
	for rest, found := start, true; found; {
		if _, rest, found = bytes.Cut(rest, []byte(headerStart)); !found {
			break
		}
		if v := leadingNumber(rest); v > version {
			return h, fmt.Errorf("%s has version %d of the format, but this program reads only up to version %d: use a newer program; the file was left as it is", name, v, version)
		}
		reason = "neither copy of the header is valid"
	}
	return h, damaged(name, 1, 0, reason)
}

// readHeaderCopy returns the version and the "synced" of copy i. Both are 0 if the copy is
// damaged or has a later version.
func readHeaderCopy(start []byte, i int64) (v int, synced int64) {
	if int64(len(start)) < (i+1)*headerCopyLen {
		return 0, 0
	}
	line := start[i*headerCopyLen:][:headerCopyLen]
	v = int(line[len(headerStart)]) - '0'
	field := line[headerCopyLen-int64(offsetWidth+crcLen+1):]
	synced = leadingNumber(bytes.TrimLeft(field, " "))
	if v < 1 || v > version || !bytes.Equal(line, appendHeaderCopy(nil, v, synced)) {
		return 0, 0
	}
	return v, synced
}

// leadingNumber returns the decimal number at the start of b, or 0 if there is none.
func leadingNumber(b []byte) int64 {
	digits := len(b) - len(bytes.TrimLeft(b, "0123456789"))
	n, _ := strconv.ParseInt(string(b[:digits]), 10, 64)
	return n
}
