package oplog

import (
	"bytes"
	"fmt"
	"strconv"
)

// The first line names the format. headerStart begins it in every version there
// will ever be; the number of the version follows.
const (
	headerStart = `{"format":"webhookcfg log","version":`
	version     = 1
	headerLen   = int64(len(headerStart) + len("1") + len(syncedKey) + offsetWidth + crcLen + 1)
	offsetWidth = 20
)

// appendHeader appends the first line. It has the same length whatever it says,
// since a rewrite knows what to say only at its end.
func appendHeader(b []byte, synced int64) []byte {
	start := len(b)
	b = fmt.Appendf(b, "%s%d%s%*d", headerStart, version, syncedKey, offsetWidth, synced)
	return sealLine(b, start)
}

// readHeader reads the first line of a file and returns its "synced".
func readHeader(file File, name string, size int64) (synced int64, err error) {
	line := make([]byte, min(size, headerLen))
	if err := readFull(file, line, 0); err != nil {
		return 0, err
	}
	rest, isLog := bytes.CutPrefix(line, []byte(headerStart))
	if !isLog {
		return 0, damaged(name, 1, 0, "this is not the first line of a log")
	}
	if v := leadingNumber(rest); v > version {
		return 0, fmt.Errorf("%s is of version %d of the format, this program knows up to %d, and left it as it is", name, v, version)
	}
	field := bytes.TrimPrefix(rest, []byte(strconv.Itoa(version)+syncedKey))
	synced = leadingNumber(bytes.TrimLeft(field, " "))
	if !bytes.Equal(line, appendHeader(nil, synced)) {
		return 0, damaged(name, 1, 0, "the first line is not as it was written")
	}
	return synced, nil
}

// leadingNumber returns the number that b begins with, 0 if it begins with none.
func leadingNumber(b []byte) int64 {
	digits := len(b) - len(bytes.TrimLeft(b, "0123456789"))
	n, _ := strconv.ParseInt(string(b[:digits]), 10, 64)
	return n
}
