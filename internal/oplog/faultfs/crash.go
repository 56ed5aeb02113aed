package faultfs

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is what a disk writes as a whole or not at all. There are none as small as
// this, which makes for more ways to tear a write.
const sector = 64

// Piece is something that a crash keeps or loses, of a number of bytes.
type Piece struct {
	// Kind says what it is.
	Kind Kind
	// Size is its length in bytes; 1 where it has none.
	Size int
}

// Kind is a kind of [Piece].
type Kind int

const (
	// Naming is a change of the names in the folder, of size 1.
	Naming Kind = iota
	// Cutting is a truncation, of size 1.
	Cutting
	// Growing is a longer file without the data that made it longer, of size 1.
	Growing
	// Data is what a write put into one sector.
	Data
)

// Keep decides what a crash leaves of what was not durable. It is asked for each
// piece, in order, and returns how many bytes of it are left.
type Keep func(Piece) int

// Nothing keeps none of it.
func Nothing(Piece) int { return 0 }

// Everything keeps all of it.
func Everything(p Piece) int { return p.Size }

// Some keeps each piece or loses it, as chance has it: a later one may be kept
// and an earlier one lost.
func Some(random *rand.Rand) Keep {
	return func(p Piece) int { return p.Size * random.IntN(2) }
}

// First keeps a number of bytes, and nothing that comes after them.
func First(size int) Keep {
	return func(p Piece) int {
		if p.Kind == Growing {
			return 0
		}
		kept := min(p.Size, size)
		size -= kept
		return kept
	}
}

// Pending returns how many bytes [First] can keep.
func (f *FS) Pending() (size int) {
	f.Crash(func(p Piece) int {
		if p.Kind != Growing {
			size += p.Size
		}
		return 0
	})
	return size
}

// Crash returns the folder as it is after a power cut at this moment. f stays as
// it is; both can go on apart.
func (f *FS) Crash(keep Keep) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := maps.Clone(f.durable)
	for _, change := range f.pending {
		if keep(Piece{Naming, 1}) == 1 {
			apply(names, change)
		}
	}
	return folder(names, func(n *inode) *inode { return n.crash(keep) })
}

// Restart returns the folder as the next process finds it after the one that used
// f was killed: all that was written is there, whether durable or not, and
// nothing is locked. f must not be used any more.
func (f *FS) Restart() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := folder(f.names, func(n *inode) *inode { return n })
	next.durable, next.pending = f.durable, f.pending
	return next
}

// folder returns a folder of files that are made from others. Two names of one
// file stay so.
func folder(names map[string]*inode, from func(*inode) *inode) *FS {
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

// crash returns what is left of the file, all of it durable.
func (n *inode) crash(keep Keep) *inode {
	left := bytes.Clone(n.durable)
	for _, w := range n.pending {
		left = w.partly(left, keep)
	}
	return &inode{content: left, durable: bytes.Clone(left)}
}

// partly returns the content after what is kept of the write.
func (w write) partly(content []byte, keep Keep) []byte {
	if w.truncate {
		if keep(Piece{Cutting, 1}) == 1 {
			return w.to(content)
		}
		return content
	}
	if end := w.at + int64(len(w.data)); end > int64(len(content)) && keep(Piece{Growing, 1}) == 1 {
		content = extend(content, end)
	}
	for at, rest := w.at, w.data; len(rest) > 0; {
		piece := rest[:min(int64(len(rest)), sector-at%sector)]
		if kept := keep(Piece{Data, len(piece)}); kept > 0 {
			content = write{at: at, data: piece[:kept]}.to(content)
		}
		at, rest = at+int64(len(piece)), rest[len(piece):]
	}
	return content
}
