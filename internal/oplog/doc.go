// Package oplog stores changes in one append-only file: it makes them durable, reads
// them back when it is opened, and compacts the file when most of it is superseded. It
// does not interpret the changes; see [State].
//
// # File format, version 2
//
// A file is UTF-8 text, one JSON object per line, each line terminated by one '\n'. The
// first two lines are the two copies of the header. Every other line is a record, a set
// or an unset.
//
//		{"format":"webhookcfg log","version":2,"synced":                 426,"crc":"3e135f46"}
//		{"format":"webhookcfg log","version":2,"synced":                 174,"crc":"b99fe07e"}
//		{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a","time":"2026-01-02T12:00:01.000001Z","synced":174,"crc":"8caa41e6"}
//		{"op":"unset","client":"acme","scope":"all","time":"2026-01-02T12:00:02.000002Z","synced":314,"crc":"02d81596"}
//
//	  - A set or unset has either an "entity" or the "scope" "all". One of the two is
//	    always present: a missing key never means "all".
//	  - "time" is in UTC. It has six digits of a fraction, or none for a whole second.
//	  - "synced" is an offset in bytes: everything before it was on disk when the line
//	    was written. It is the one thing in which the copies of the header may differ:
//	    the larger one counts.
//	  - "crc" is the CRC-32C, in hexadecimal, of the part of the line before the key.
//
// The keys have this order, and there are no others. There is no white space, except
// for the padding of the number in the header to 20 characters. In strings, '"' and '\'
// are escaped by a '\', control characters below U+0020 as \u00xx, and nothing else is.
// So each record has exactly one spelling, and no other is accepted. A line has at most
// 1 MiB.
//
// A file of a higher version is neither read nor changed. All versions have two copies
// of the header, the second one within the first 1 KiB, and share its start, up to and
// including the version number.
//
// Version 1 has no fractions. Opening a file of version 1 changes both copies of its header
// to version 2, and nothing else, before anything is appended: programs that know only
// version 1 refuse it from then on.
//
// While a log is open, or after a crash, blank lines may follow the last record: space
// preallocated for later writes, because a write inside the file is synced faster than
// one that extends it.
//
// # Torn tail or damage
//
// Changes are written in batches: one write and one sync, then the batch is applied and
// its callers return, then the next batch is written. All lines of a batch have the same
// "synced", the offset of the first of them. So a crash can leave only the last batch
// incomplete, but any part of it: the bytes that did not reach the disk read as zeros,
// as blank lines, or are beyond the end of the file.
//
// Everything before the "synced" of an intact line is sealed: it was on disk. A line
// there that is not intact is damage, and the log is not opened. So is a line that is
// not at the place that its "synced" implies, and the lack of anything that the header
// covers.
//
// The last batch is not sealed. Its intact lines count up to the first one that is not
// intact, whether or not their callers had returned. The rest is a torn tail and is cut
// if a crash explains it: the first line that is not intact must end early, in front of
// a hole or at the end of the file. Anything else is damage, such as a line with all its
// parts and the checksum of something else.
//
// So sealed records are never cut. Closing a log, and opening it, seals all of it: once
// everything is on disk, one copy of the header is rewritten to cover it, the one with the
// smaller "synced" or the one that is torn. The other copy stays as it is until the new one
// is on disk, so a crash at any moment leaves one that is valid. A file that a compaction
// writes is covered by both copies before it gets its name. A complete file that was cut
// later, even between two lines, is therefore refused as damaged.
//
// This rests on two assumptions. Bytes that a crash kept from the disk read as what was
// there before, or as zeros. And a sync that succeeds did its work.
//
// # Failures
//
// A write that fails before its sync is undone: the file is truncated after the last line
// that was written completely, and synced, so that nothing is ever written over the rest
// of another batch. The lines before that are durable and their callers return nil.
//
// After a failed sync, no later one proves anything about the batch, since the system may
// treat its pages as clean. Changes are refused until a repair cuts the batch. If the
// process ends before, the next opening writes the batch once more, as all that is not
// sealed. Changes are refused, too, while the name of the log does not lead to its file,
// and while it is unknown which of two files a compaction left under that name; both
// have the same records.
//
// If the content of the file is not as it was written, another program changed it. A batch
// that finds that out fails. The repair then writes a new file from the state, which has all
// that was acknowledged. A batch reads back, before it is acknowledged, the header and what
// was written since the last check; the check comes after the write, so that it also sees a
// cut just before, after which the write left a hole.
//
// # Files
//
// Next to the log NAME there is NAME.lock, which excludes a second opener and records
// that the log exists, and at times NAME.tmp, the file that is about to replace it. All
// three are locked while they are open, the log itself because it may have more names and
// NAME.lock may have been removed.
package oplog
