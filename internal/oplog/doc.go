// Package oplog keeps changes in one file: it appends them durably, reads them
// back, and rewrites the file when most of it no longer counts. What the changes
// lead to is none of its business; see [State].
//
// # The format, version 1
//
// A file is UTF-8 text, one JSON object per line, each line ended by one '\n'.
// The first line names the format:
//
//	{"format":"webhookcfg log","version":1,"crc":"7b0f1a0c"}
//
// Every other line is a record: a set, an unset or a mark.
//
//		{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a","time":"2026-01-02T03:04:05Z","synced":58,"crc":"0f2a3b4c"}
//		{"op":"unset","client":"acme","scope":"all","time":"2026-01-02T03:04:06Z","synced":189,"crc":"1a2b3c4d"}
//		{"op":"mark","synced":292,"crc":"5e6f7a8b"}
//
//	  - A set or unset reaches either one "entity" or the "scope" "all", always
//	    said in so many words: a key that is missing never means "all".
//	  - "time" is in UTC, to the second.
//	  - "synced" is an offset in bytes: when the line was written, everything before
//	    it was on disk. See below.
//	  - "crc" is the CRC-32C of the bytes of the line before `,"crc":"`, in
//	    hexadecimal.
//
// Keys come in this order and no others do; there is no white space between
// tokens; strings escape '"' and '\' by a '\', and control characters below
// U+0020 as \u00xx. A record thus has one spelling, and a reader refuses
// any other. A line has at most 1 MiB.
//
// A reader refuses a file of a higher version and leaves it as it is; writers of
// a higher version keep the first line's beginning, up to and with the number.
//
// While a log is open, or after a crash, blank lines may follow the last record:
// room that is filled ahead of time, since a write that does not move the end of
// a file is made durable sooner.
//
// # A torn tail or damage
//
// Changes are written in groups: one write, one sync, and only then are the
// callers of the group answered and the next group written. All lines of one
// group have the same "synced", the offset of its first line: what is before
// that offset was synced before. A crash can thus leave only the last group
// incomplete, any part of it, in any order: of what did not reach the disk there
// are zeros, blank lines, or the end of the file.
//
// Let P, proved, be the greatest "synced" of all intact lines. A line before P
// that is not intact was on disk once: that is damage, and the log refuses to
// open. From P on there is the last group. Its intact lines up to the
// first one that is not count, whether their callers were answered or not. What
// comes from there on is cut if a crash can explain it: the first line
// that is not intact stops short, and what should follow it is a hole or the end
// of the file. Anything else, such as a line with all its parts and a checksum that
// does not match, is damage too.
//
// So what is proved is never cut. What is not proved is only the last group:
// and Close, a compaction and recovery itself end the file with a mark, whose
// "synced" proves all of it.
//
// That rests on two assumptions: that bytes which a crash kept from the disk read
// as what was there before, or as zeros; and that a sync which succeeded
// was one. After a sync that failed nothing is written any more, and the next
// to open the file writes what is not proved once more, since the system may take
// such bytes for clean.
//
// # Files
//
// Beside the log NAME there are NAME.lock, which keeps a second opener out and
// says that there is a log, and, during a compaction, NAME.tmp.
package oplog
