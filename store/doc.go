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
// that the file exists, and during a compaction NAME.tmp. The file itself is locked too,
// so that a hard link to it is refused as well. Do not remove the lock file: with it, a
// store that lost its file refuses to open instead of starting empty. The
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
// A change that cannot be written, for example on a full disk, fails with [ErrReadOnly]
// and changes nothing; the store serves reads and tries the next change. After a failed
// sync, all changes are refused with ErrReadOnly: the store repairs its file, at least
// once a second, and then accepts changes again. It never repeats a sync that failed,
// since the system may treat what it did not write as clean: it cuts the changes that
// were not acknowledged. Should the process end before the repair, such a change may be
// in effect when the file is opened again. [File.Healthy] returns why changes fail at the moment.
//
// Don't touch the file of an open store. Changes check it every 10 ms, and Close does too. If
// the file was renamed, removed or replaced, or its directory was renamed or hidden by a
// mount, changes fail with ErrReadOnly until it is back. If another program emptied, cut or
// overwrote the file, as log rotation by copying does, the change that notices it fails, and
// the store writes the whole file anew from memory and logs that.
//
// # Recovery
//
// A crash can leave part of the last write at the end of the file, of changes that were
// not acknowledged. OpenFile cuts such a torn tail and logs it. It refuses a file that is
// damaged anywhere else, or was cut, with [ErrDamaged], the line and the offset. [CheckFile]
// does the same with a file that is not open, and changes nothing.
//
// The remedy is a backup. Without one, [SalvageFile] copies all intact changes to a new file
// and reports what it left out. The result is not what the clients set: where the last
// change of an entity is lost, the one before it is in effect again, which may be the URL
// of a receiver that was given up, or was unset because it leaked.
//
// # Compaction
//
// Superseded changes stay in the file until a compaction. It starts by itself, see
// FileOptions.CompactRatio, or with [File.Compact]; it writes a new file concurrently
// with changes and replaces the old one atomically. It needs disk space for a second file
// of the live records. If it fails, the file stays as it was.
//
// # Erasing a client
//
// Unset webhooks, and the client's name, stay in the file until a compaction. [File.Erase], which
// admin.Erase calls, compacts at once. Backups keep what was in the file before, and so may the
// disk: the system doesn't overwrite the blocks that it frees. A [Memory] keeps nothing but, for its
// feed, the names of up to 4,096 clients.
//
// # Backup
//
// [File.Backup] writes a complete copy concurrently with changes, and reads it back. A
// program that copies the file of an open store, such as cp, tar or rsync, reads its parts
// at different moments: the result may lack changes, or be refused as damaged. You can copy
// the file of a closed store, or take a snapshot of the file system at any time. A hard link
// is no backup: it is the same file, and the open store goes on writing to it.
//
// To restore, close the store, put the copy in the place of the file, and leave the lock
// file. The program examples/admin checks, salvages and backs up files that are not open, and
// copies them to other stores.
package store
