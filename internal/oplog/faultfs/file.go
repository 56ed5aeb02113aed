package faultfs

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"slices"
)

// inode is a file.
type inode struct {
	// name is its latest name.
	name string
	// content is the file as it looks, durable as it is on disk. pending are the writes
	// between the two.
	content, durable []byte
	pending          []write
	// allocated are the sectors that take up space on the disk.
	allocated []bool
}

// write is a change of the content: data at an offset, or a new end of the file there.
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
	content = extend(content, w.at)
	kept := copy(content[w.at:], w.data)
	return append(content, w.data[kept:]...)
}

// extend appends zeros up to a length.
func extend(content []byte, length int64) []byte {
	if missing := length - int64(len(content)); missing > 0 {
		// Within its capacity, a slice has old bytes.
		content = slices.Grow(content, int(missing))[:length]
		clear(content[length-missing:])
	}
	return content
}

func (n *inode) write(w write) {
	n.pending = append(n.pending, w)
	n.content = w.to(n.content)
	if w.truncate {
		n.allocated = n.allocated[:min(len(n.allocated), sectors(w.at))]
	}
}

// allocate takes space for a write of size bytes when free bytes are left, and returns how
// many of them fit.
func (n *inode) allocate(at int64, size int, free int64) int {
	last := sectors(at + int64(size))
	n.allocated = append(n.allocated, make([]bool, max(0, last-len(n.allocated)))...)
	for i := int(at / sector); i < last; i++ {
		if n.allocated[i] {
			continue
		}
		if free < sector {
			return int(max(at, int64(i)*sector) - at)
		}
		n.allocated[i] = true
		free -= sector
	}
	return size
}

// newInode returns a file that is durable.
func newInode(content []byte) *inode {
	n := &inode{content: bytes.Clone(content), durable: bytes.Clone(content)}
	n.allocate(0, len(content), math.MaxInt64)
	return n
}

// overwrite replaces the content, durably.
func (n *inode) overwrite(content []byte) {
	name := n.name
	*n = *newInode(content)
	n.name = name
}

// used returns how many bytes the file takes up on the disk.
func (n *inode) used() (bytes int64) {
	for _, is := range n.allocated {
		if is {
			bytes += sector
		}
	}
	return bytes
}

// sectors returns how many sectors it takes to hold this many bytes.
func sectors(bytes int64) int { return int((bytes + sector - 1) / sector) }

func (n *inode) sync() {
	for _, w := range n.pending {
		n.durable = w.to(n.durable)
	}
	n.pending = nil
}

// file is an open file.
type file struct {
	fs     *FS
	inode  *inode
	closed bool
}

// call makes a call on an open file.
func (f *file) call(op Op, effect func() error, failing func(Outcome)) error {
	return f.fs.call(op, f.name(), func() error {
		if f.closed {
			return fs.ErrClosed
		}
		return effect()
	}, failing)
}

func (f *file) name() string {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.inode.name
}

// ReadAt implements [oplog.File].
func (f *file) ReadAt(b []byte, offset int64) (n int, err error) {
	err = f.call(OpRead, func() error {
		n = copy(b, f.inode.content[min(offset, int64(len(f.inode.content))):])
		return nil
	}, nil)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements [oplog.File].
func (f *file) WriteAt(b []byte, offset int64) (n int, err error) {
	write := func(data []byte) error {
		n = len(data)
		free := int64(math.MaxInt64)
		if f.fs.capacity > 0 {
			free = f.fs.capacity - f.fs.used()
		}
		if n = f.inode.allocate(offset, n, free); n > 0 {
			f.inode.write(write{at: offset, data: bytes.Clone(data[:n])})
		}
		if n < len(data) {
			return f.fs.full
		}
		return nil
	}
	err = f.call(OpWrite, func() error { return write(b) }, func(o Outcome) {
		if o.kind == FailHalfway.kind {
			_ = write(b[:len(b)/2])
		}
	})
	if err == nil {
		n = len(b) // also if the call only pretends
	}
	return n, err
}

// Truncate implements [oplog.File].
func (f *file) Truncate(size int64) error {
	return f.call(OpTruncate, func() error {
		f.inode.write(write{at: size, truncate: true})
		return nil
	}, nil)
}

// Sync implements [oplog.File].
func (f *file) Sync() error {
	return f.call(OpSync, func() error {
		f.inode.sync()
		return nil
	}, func(Outcome) { f.inode.pending = nil })
}

// Size implements [oplog.File].
func (f *file) Size() (size int64, err error) {
	err = f.call(OpSize, func() error {
		size = int64(len(f.inode.content))
		return nil
	}, nil)
	return size, err
}

// Close implements [oplog.File]. The file is closed even if the call fails.
func (f *file) Close() error {
	release := func() error {
		if f.closed {
			return nil
		}
		f.closed = true
		if f.fs.open[f.inode]--; f.fs.open[f.inode] == 0 {
			delete(f.fs.open, f.inode)
		}
		return nil
	}
	return f.call(OpClose, release, func(Outcome) { _ = release() })
}
