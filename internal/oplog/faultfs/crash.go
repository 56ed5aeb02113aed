package faultfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is how many bytes a disk writes atomically. Real sectors are larger, but with this
// size there are more ways to tear a write.
const sector = 64

// Piece is a part of the pending changes that a crash can keep or lose: a change of names, a
// truncation, the growth of a file, or a write's bytes in one sector.
type Piece struct {
	// Size is the length of the data in bytes, or 1 if there is no data.
	Size int
	// Growth reports that the piece makes a file longer, without the data that did so.
	Growth bool
}

// Keep decides what a crash keeps of the pending changes. [FS.Crash] calls it for each piece,
// in order. Return how many bytes of the piece to keep.
type Keep func(Piece) int

// Nothing loses all pieces.
func Nothing(Piece) int { return 0 }

// Everything keeps all pieces.
func Everything(p Piece) int { return p.Size }

// Some keeps or loses each piece at random, so it can keep a later one and lose an earlier
// one.
func Some(random *rand.Rand) Keep {
	return func(p Piece) int { return p.Size * random.IntN(2) }
}

// First keeps the first size bytes, and loses the rest.
func First(size int) Keep {
	return func(p Piece) int {
		if p.Growth {
			return 0
		}
		kept := min(p.Size, size)
		size -= kept
		return kept
	}
}

// Pending returns the number of bytes that [First] can keep.
func (f *FS) Pending() (size int) {
	f.Crash(func(p Piece) int {
		if !p.Growth {
			size += p.Size
		}
		return 0
	})
	return size
}

// Crash returns the directory after a power failure at this moment. It doesn't change f, so
// you can go on using both.
func (f *FS) Crash(keep Keep) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := maps.Clone(f.durable)
	for _, change := range f.pending {
		if keep(Piece{Size: 1}) == 1 {
			apply(names, change)
		}
	}
	return newDir(names, func(n *inode) *inode { return n.crash(keep) })
}

// Restart returns the directory as the next process finds it if the one that uses f is
// killed: all writes are there, durable or not, and nothing is locked. Don't use f
// afterwards.
func (f *FS) Restart() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := newDir(f.names, func(n *inode) *inode { return n })
	next.durable, next.pending = f.durable, f.pending
	return next
}

// newDir returns a directory with files that from makes of others. If a file has two names,
// it still has both.
func newDir(names map[string]*inode, from func(*inode) *inode) *FS {
	f := New()
	files := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		node := names[name]
		if files[node] == nil {
			files[node] = from(node)
		}
		files[node].name = name
		f.names[name], f.durable[name] = files[node], files[node]
	}
	return f
}

// crash returns the file as it is after a crash, all of it durable.
func (n *inode) crash(keep Keep) *inode {
	left := bytes.Clone(n.durable)
	for _, w := range n.pending {
		left = w.partly(left, keep)
	}
	return newInode(left)
}

// partly returns the content after the kept pieces of the write.
func (w write) partly(content []byte, keep Keep) []byte {
	if w.truncate {
		if keep(Piece{Size: 1}) == 1 {
			return w.to(content)
		}
		return content
	}
	if end := w.at + int64(len(w.data)); end > int64(len(content)) && keep(Piece{Size: 1, Growth: true}) == 1 {
		content = extend(content, end)
	}
	for at, rest := w.at, w.data; len(rest) > 0; {
		piece := rest[:min(int64(len(rest)), sector-at%sector)]
		if kept := keep(Piece{Size: len(piece)}); kept > 0 {
			content = write{at: at, data: piece[:kept]}.to(content)
		}
		at, rest = at+int64(len(piece)), rest[len(piece):]
	}
	return content
}
