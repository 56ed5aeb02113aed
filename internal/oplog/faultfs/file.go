package faultfs

import (
	"bytes"
	"io"
	"io/fs"
)

// inode is a file.
type inode struct {
	// name is the last name that it had.
	name string
	// content is the file as it looks, durable as it is on disk, and pending the writes
	// between the two.
	content, durable []byte
	pending          []write
}

// write is a change of the content: data at an offset, or the end of the file there.
type write struct {
	at       int64
	data     []byte
	truncate bool
}

// to returns the content after the write.
func (w write) to(content []byte) []byte {
	if w.truncate && w.at <= int64(len(content)) {
		return content[:w.at]
	}
	content = extend(content, w.at+int64(len(w.data)))
	copy(content[w.at:], w.data)
	return content
}

// extend appends zeros up to a length.
func extend(content []byte, length int64) []byte {
	if missing := length - int64(len(content)); missing > 0 {
		// append, unlike a slice of the capacity, does not bring back old bytes.
		content = append(content, make([]byte, missing)...)
	}
	return content
}

func (n *inode) write(w write) {
	n.pending = append(n.pending, w)
	n.content = w.to(n.content)
}

func (n *inode) sync() {
	for _, w := range n.pending {
		n.durable = w.to(n.durable)
	}
	n.pending = nil
}

// file is an open file.
type file struct {
	fs        *FS
	inode     *inode
	holdsLock bool
	closed    bool
}

// call makes a call on an open file.
func (f *file) call(op Op, effect func(), failing func(Outcome)) error {
	return f.fs.call(op, f.name(), func() error {
		if f.closed {
			return fs.ErrClosed
		}
		effect()
		return nil
	}, failing)
}

func (f *file) name() string {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.inode.name
}

// ReadAt implements [oplog.File].
func (f *file) ReadAt(b []byte, offset int64) (n int, err error) {
	err = f.call(OpRead, func() {
		n = copy(b, f.inode.content[min(offset, int64(len(f.inode.content))):])
	}, nil)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements [oplog.File].
func (f *file) WriteAt(b []byte, offset int64) (n int, err error) {
	data := bytes.Clone(b)
	err = f.call(OpWrite, func() {
		f.inode.write(write{at: offset, data: data})
	}, func(o Outcome) {
		if o == FailHalfway {
			n = len(data) / 2
			f.inode.write(write{at: offset, data: data[:n]})
		}
	})
	if err != nil {
		return n, err
	}
	return len(b), nil
}

// Truncate implements [oplog.File].
func (f *file) Truncate(size int64) error {
	return f.call(OpTruncate, func() {
		f.inode.write(write{at: size, truncate: true})
	}, nil)
}

// Sync implements [oplog.File].
func (f *file) Sync() error {
	return f.call(OpSync, f.inode.sync, func(Outcome) { f.inode.pending = nil })
}

// Size implements [oplog.File].
func (f *file) Size() (size int64, err error) {
	err = f.call(OpSize, func() { size = int64(len(f.inode.content)) }, nil)
	return size, err
}

// Close implements [oplog.File]. Whatever its outcome, the file is closed.
func (f *file) Close() error {
	release := func() {
		f.closed = true
		if f.holdsLock {
			delete(f.fs.locked, f.inode.name)
		}
	}
	return f.call(OpClose, release, func(Outcome) { release() })
}
