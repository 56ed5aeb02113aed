// Package oplog keeps changes in one file: it appends them durably, reads them
// back, and writes the file anew when most of it no longer counts. What the changes
// lead to is none of its business; see [State].
//
// # The format, version 1
//
// A file is UTF-8 text, one JSON object per line, each line ended by one '\n'.
// The first line names the format; every other one is a record: a set, an unset or
// a mark.
//
//		{"format":"webhookcfg log","version":1,"synced":                  87,"crc":"11bc5714"}
//		{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a","time":"2026-01-02T03:04:05Z","synced":87,"crc":"de3fa138"}
//		{"op":"unset","client":"acme","scope":"all","time":"2026-01-02T03:04:06Z","synced":219,"crc":"a068d5df"}
//		{"op":"mark","synced":324,"crc":"64655bfe"}
//
//	  - A set or unset reaches one "entity", or the "scope" "all". One of the two is
//	    always there: a key that is missing never means "all".
//	  - "time" is in UTC, to the second.
//	  - "synced" is an offset in bytes: when the line was written, all before it was
//	    on disk. In the first line, it is how long the file was when it got
//	    its name.
//	  - "crc" is the CRC-32C, in hexadecimal, of what stands before its key.
//	  - A mark says nothing but that.
//
// The keys have this order, and there are no others. There is no white space, but
// for what brings the number of the first line to 20 places. In strings, '"'
// and '\' are escaped by a '\', control characters below U+0020 as \u00xx, and
// nothing else is. So each record has one spelling, and no other is read. A
// line has at most 1 MiB.
//
// A file of a higher version is not read, and is left as it is. All versions
// share the beginning of the first line, up to and with the number.
//
// While a log is open, or after a crash, blank lines may follow the last record:
// room made ahead of time, as a write within the file is synced sooner than
// one that makes it longer.
//
// # A torn tail, or damage
//
// Changes are written in groups: one write and one sync, then the callers are
// answered, then the next group is written. All lines of a group have the same
// "synced", the offset of the first of them. So a crash can leave but the last
// group incomplete, though any part of it: where a part did not reach the disk,
// there are zeros, or blank lines, or the end of the file.
//
// What is before the "synced" of any intact line is proved: it was on disk. A line
// there that is not intact is damage, and the log is not opened. So is a line that
// is not where its "synced" belongs, and the lack of anything that the first
// line speaks of.
//
// What is not proved is the last group. Its intact lines count up to the first one
// that is not, whether or not their callers were answered. The rest is cut if a
// crash explains it: the first line that is not intact must stop short, in
// front of a hole or the end of the file. Anything else is damage, such as a line that has
// all its parts and a checksum of something else.
//
// So what is proved is never cut. Closing a log and opening it prove all of it, by
// a mark at its end; a compaction does, by its first line.
//
// This rests on two assumptions. Bytes that a crash kept from the disk read as what
// was there before, or as zeros. And a sync that succeeds did what it says; after
// one that failed, nothing more is written, and whoever opens the log next
// writes what is not proved once more, since the system may take it for clean.
//
// # Files
//
// Beside the log NAME there is NAME.lock, which keeps out a second opener and says
// that there is a log, and at times NAME.tmp, the file that is to take its place.
package oplog
