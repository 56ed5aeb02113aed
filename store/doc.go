// Package store has the stores that come with the module.
//
//   - [Memory] keeps the configuration as long as the process lives.
//   - [File] keeps it in one file, durably.
//
// Package storetest has the conformance suite for a host's own store, package cache a
// sender's local copy of any store.
//
// # The file
//
// The file of a [File] is an append-only log: text, one JSON object per line, with a
// checksum per line. Other programs, such as jq and grep, may read it at any time; none
// may write it. The first line holds the version of the format, which the package
// internal/oplog documents.
//
// Next to the file NAME there are NAME.lock, which excludes a second opener and records
// that the file exists, and during a compaction NAME.tmp. Do not remove the lock file:
// with it, a store that lost its file refuses to open instead of starting empty. The
// three are readable and writable only by the user that created them (on Windows, as the
// access list of the directory determines); see FileOptions.AllowShared.
//
// # Durability
//
// A change is written, synced, applied and acknowledged, in this order: when Apply
// returns nil, the change survives a crash of the process or the machine, and every later
// read sees it. Concurrent changes share one write and one sync. No reader sees a change
// that a crash may still undo. This requires a file system and a disk on which a
// successful sync is durable.
//
// After a failed write or sync, for example on a full disk, the store still serves reads
// and refuses all changes with [ErrReadOnly]. Remove the cause, then close the store and
// open it again.
//
// # Recovery
//
// A crash can leave part of the last write at the end of the file, of changes that were
// not acknowledged. OpenFile cuts such a torn tail and logs it. It refuses a file that is
// damaged anywhere else with [ErrDamaged], the line, the offset and the remedy: restore a
// backup, or truncate a copy at the offset to give up everything that follows.
//
// # Compaction
//
// Superseded changes stay in the file until a compaction. It starts by itself, see
// FileOptions.CompactRatio, or with [File.Compact]; it writes a new file concurrently
// with changes and replaces the old one atomically. It needs disk space for a second file
// of the live records. If it fails, the file stays as it was.
//
// # Backup
//
// Copy the file itself, not the lock file. The copy of an open store is a valid file that
// may lack the latest changes. Two things must not happen: a compaction while the file is
// copied, and a hard link instead of a copy, since a compaction truncates the file that
// it replaces. Set a negative CompactRatio and call Compact at another time, or copy from
// a snapshot of the file system. To restore, close the store, put the copy in the place
// of the file, and leave the lock file.
package store
