// Package store has two stores:
//
//   - [Memory] keeps the configuration until the process ends.
//   - [File] keeps it in one file, durably, for one process.
//
// Both fit [webhookcfg.NewHandler]:
//
//	webhooks, err := store.OpenFile("/var/lib/hooks/webhooks.jsonl", nil)
//	defer webhooks.Close()
//	handler, err := webhookcfg.NewHandler(webhooks, verifier, nil)
//
// For several processes, use package [example.com/go-webhookcfg/store/sqlstore] or
// [example.com/go-webhookcfg/store/etcdstore]. Package [cache] keeps a sender's copy of any
// store, and package [example.com/go-webhookcfg/store/storetest] tests a store that you write
// yourself.
//
// # The file
//
// The file is an append-only log: text, with one JSON object and a checksum per line. You can
// read it with jq or grep at any time. Never write to it.
//
// Next to a file NAME there's NAME.lock, and during a compaction NAME.tmp. Don't remove the lock
// file: it keeps other processes out, and if NAME ever gets lost, it makes [OpenFile] return an
// error instead of starting empty.
//
// Only the user that created the files can read and write them (on Windows, the directory's
// access list decides). [FileOptions.AllowShared] allows more.
//
// A volume of Kubernetes is often a directory of root that everybody or a group can write to, so
// OpenFile refuses it. Let an init container that runs as your service's user make a directory
// inside it, with mkdir -p -m 700, and put the file there. If the pod has an fsGroup, also set
// fsGroupChangePolicy to OnRootMismatch. Otherwise Kubernetes lets the group write to everything
// on the volume at each start.
//
// # Durability
//
// When [File.Apply] returns nil, the change survives a crash of the process or the machine, and
// every later read sees it. Readers never see a change that a crash could undo. This needs a
// file system and a disk that keep synced data.
//
// # When changes fail
//
// A change that can't be written fails with [ErrReadOnly] and has no effect, while reads still
// work. Once you remove the cause, such as a full disk, the store accepts changes again,
// without a restart. Your health check should call [File.Healthy], which says what's wrong.
//
// After a failed sync, the store refuses all changes until it has repaired its file, which it
// tries at least once a second. The repair cuts off the changes that weren't acknowledged. If the
// process ends first, they can reappear when you open the file again.
//
// Don't touch the file of an open store, and keep log rotation away from it:
//
//   - If you move, remove, replace or hide the file or its directory, changes fail until it's
//     back. The change that noticed it failed too, but if the process ends before the file is
//     back, it can be in the file that you moved.
//   - If a program cuts or overwrites the file, the change that notices it fails. The store
//     then writes the whole file again from memory, and logs that.
//
// The store checks the file before it acknowledges changes, at most every 10 milliseconds,
// and when you close it.
//
// # Back up and restore
//
// [File.Backup] writes a complete copy while the store is in use, and reads it back. You can
// also take a snapshot of the file system at any time, or copy the file of a closed store.
//
// Don't copy the file of an open store with cp, tar or rsync. They read different parts at
// different moments, so the copy can lack changes or be damaged. A hard link is no backup
// either: it's the same file.
//
// To restore, close the store, put the copy in the place of the file, and leave the lock file
// alone.
//
// The program examples/admin backs up, checks and salvages files that aren't open, and copies
// them to other stores. If your service listens for that, as examples/server does, it also
// backs up a file that's open.
//
// # When the file is damaged
//
// If a crash leaves the last write incomplete, its changes weren't acknowledged, so [OpenFile]
// cuts the incomplete end, logs that, and goes on. If anything else is damaged, or the file was
// cut short, OpenFile returns an [ErrDamaged] with the line and the offset, and leaves the file
// as it is. [CheckFile] checks a file that isn't open.
//
// Restore a backup. If you have none, [SalvageFile] copies all intact changes to a new file
// and reports everything that it left out. Check the result before you send anything: an
// entity whose last change is lost has its previous URL again, and the client may have unset
// that because it leaked.
//
// # Compaction
//
// Superseded changes stay in the file until a compaction. By default, the store starts one in
// the background once they take more than half of the file and at least 1 MiB. Set
// [FileOptions.CompactManually] if you'd rather call [File.Compact] yourself. A compaction needs
// disk space for a second copy of the live changes. If it fails, the file stays as it was.
//
// # Erase a client
//
// Unset webhooks, and the client's name, stay in the file until a compaction. [File.Erase],
// which [admin.Erase] calls, compacts at once. Earlier backups still have the client, and so can
// the free blocks of the disk.
package store
