// Package oplog stores changes durably in one append-only file, reads them back when you open
// it, and compacts it when most of it is superseded. It doesn't interpret the changes: it
// applies them to your [State].
//
// [Open] a log, pass changes to [Log.Append], and call [Log.Close] when you're done. [Check]
// tells you whether a file is damaged, and [Salvage] copies the intact changes out of a
// damaged one.
//
// # File format, version 2
//
// A file is UTF-8 text, with one JSON object per line, each ended by one '\n'. The first two
// lines are copies of the header. The others are records, each a set or an unset.
//
//	{"format":"webhookcfg log","version":2,"synced":                 426,"crc":"3e135f46"}
//	{"format":"webhookcfg log","version":2,"synced":                 174,"crc":"b99fe07e"}
//	{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a","time":"2026-01-02T12:00:01.000001Z","synced":174,"crc":"8caa41e6"}
//	{"op":"unset","client":"acme","scope":"all","time":"2026-01-02T12:00:02.000002Z","synced":314,"crc":"02d81596"}
//
// The keys mean this:
//
//   - A set or unset has either an "entity" or the "scope" "all". One of them is always
//     there, so a missing key can't be mistaken for "all".
//   - "time" is in UTC. It has six digits of a fraction, or none for a whole second.
//   - "synced" is an offset in bytes. When the line was written, everything before that
//     offset was on disk. The copies of the header can only differ in this number, and the
//     larger one counts.
//   - "crc" is the CRC-32C, in hexadecimal, of the line up to the comma in front of this key.
//
// Each record has exactly one spelling, and no other is accepted: the keys are always in this
// order, without others and without white space. Only the header's number is padded, to 20
// characters. Strings escape '"' and '\' with a '\', control characters below U+0020 as
// \u00xx, and nothing else. A line can have up to 1 MiB.
//
// Version 1 has no fractions. When you open such a file, the log first changes both copies of
// the header to version 2, and nothing else. From then on, programs that only know version 1
// refuse the file.
//
// The log doesn't read or change a file of a later version. So that it can recognize one, even
// if a crash tore a copy of the header, every version has two copies. Both start the same, up to
// and including the version number, and the second one starts within the first 1 KiB.
//
// While a log is open, or after a crash, you may find blank lines after the last record.
// They're space for later writes: a sync is faster if the write didn't extend the file.
//
// # Torn tail or damage
//
// The log writes changes in batches. Each gets one write and one sync. Then the log applies
// it, its callers return, and the next batch is written. All its lines have the same
// "synced", the offset of the first one. So a crash can leave only the last batch incomplete.
// Any part of it can read as zeros or blank lines, or be missing at the end of the file.
//
// Everything before the "synced" of an intact line was on disk. It's sealed. If a line there
// isn't intact, the file is damaged, and Open refuses it. The file is also damaged if a line
// isn't where its "synced" says, or if anything that the header covers is missing.
//
// The last batch isn't sealed. Its lines count up to the first one that isn't intact, even if
// their callers never returned. The rest is a torn tail if a crash can explain it: the first
// line that isn't intact must end early, in front of a hole or at the end of the file. Open
// cuts a torn tail. Anything else is damage, for example a complete line with a wrong
// checksum.
//
// So sealed records are never cut. Opening or closing a log seals all of it: once everything
// is on disk, the log rewrites the copy of the header that is torn or has the smaller
// "synced". The other copy stays valid meanwhile, in case of a crash. A compacted file gets
// its name only when both copies cover all of it. So if a complete file is cut later, even
// between two lines, Open refuses it as damaged.
//
// All of this assumes two things. Bytes that a crash kept from the disk read as zeros, or as
// they were before. And a successful sync did its work.
//
// # Failures
//
// If a write fails before its sync, the log truncates the file after the last complete line
// and syncs it. The complete lines are durable, and their callers return nil.
//
// If a sync fails, later ones prove nothing about this batch, because the system may treat
// its pages as clean. The log refuses changes until a repair has cut the batch. If the
// process ends first, the next opening writes the batch once more, as it does with everything
// that isn't sealed.
//
// The log also refuses changes while its name doesn't lead to its file, or might lead to
// another one after an interrupted compaction.
//
// If another program changes the file, the batch that notices it fails. The repair then
// writes a new file from the state, which has all acknowledged changes. Batches check for
// this before they're acknowledged, but at most every 10 milliseconds.
//
// # Files
//
// Next to the log NAME you'll find NAME.lock. It keeps others from opening the log, and
// records that the log exists. At times there's also NAME.tmp, which is about to replace the
// log. All three are locked while they're open, even the log itself: it can have more names,
// and somebody may have removed NAME.lock.
package oplog
