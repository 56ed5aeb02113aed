package oplog

import "io"

// FS is what a log needs of the one folder that it lives in. [Dir] is the real
// one. Names have no separators. All methods are safe for concurrent use.
type FS interface {
	// Lock opens or creates a file and holds it exclusively until it is closed.
	// If somebody else holds it, in this process or in another, the error wraps
	// [ErrLocked]. A locked file is never removed or renamed.
	Lock(name string) (File, error)
	// Open opens an existing file; without one, the error wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// Create makes a file that only its owner can access. If the name is taken,
	// even by a dangling link, the error wraps fs.ErrExist.
	Create(name string) (File, error)
	// Rename puts the file from in the place of to, at once and whole.
	Rename(from, to string) error
	// Remove removes a name; without it, the error wraps fs.ErrNotExist.
	Remove(name string) error
	// Sync makes every Create, Rename and Remove so far durable.
	Sync() error
	// Close ends the use of the folder.
	Close() error
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length in bytes.
	Truncate(size int64) error
	// Sync makes the content and the length durable. After a Sync that failed,
	// what was written since the last good one may be lost, even though it can
	// still be read and a later Sync succeeds.
	Sync() error
}
