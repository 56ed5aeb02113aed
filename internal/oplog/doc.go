// Package oplog stores changes in one append-only file: it makes them durable, reads
// them back when it is opened, and compacts the file when most of it is superseded. It
// does not interpret the changes; see [State].
//
// # File format, version 1
//
// A file is UTF-8 text, one JSON object per line, each line terminated by one '\n'.
// The first line is the header. Every other line is a record: a set, an unset or a
// checkpoint, whose "op" is "mark".
//
//		{"format":"webhookcfg log","version":1,"synced":                  87,"crc":"11bc5714"}
//		{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a","time":"2026-01-02T03:04:05Z","synced":87,"crc":"de3fa138"}
//		{"op":"unset","client":"acme","scope":"all","time":"2026-01-02T03:04:06Z","synced":219,"crc":"a068d5df"}
//		{"op":"mark","synced":324,"crc":"64655bfe"}
//
//	  - A set or unset has either an "entity" or the "scope" "all". One of the two is
//	    always present: a missing key never means "all".
//	  - "time" is in UTC, in whole seconds.
//	  - "synced" is an offset in bytes: everything before it was on disk when the line
//	    was written. In the header, it is the length of the file when the file got its
//	    name.
//	  - "crc" is the CRC-32C, in hexadecimal, of the part of the line before the key.
//	  - A checkpoint carries nothing but its "synced".
//
// The keys have this order, and there are no others. There is no white space, except
// for the padding of the number in the header to 20 characters. In strings, '"' and '\'
// are escaped by a '\', control characters below U+0020 as \u00xx, and nothing else is.
// So each record has exactly one spelling, and no other is accepted. A line has at most
// 1 MiB.
//
// A file of a higher version is neither read nor changed. All versions share the start
// of the header, up to and including the version number.
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
// So sealed records are never cut. Closing a log, and opening it, seals all of it with a
// checkpoint at its end; a compaction does with its header.
//
// This rests on two assumptions. Bytes that a crash kept from the disk read as what was
// there before, or as zeros. And a sync that succeeds did its work; after one that
// failed, nothing more is written, and the next opening writes what is not sealed once
// more, since the system may treat the pages as clean.
//
// # Files
//
// Next to the log NAME there is NAME.lock, which excludes a second opener and records
// that the log exists, and at times NAME.tmp, the file that is about to replace it.
package oplog
