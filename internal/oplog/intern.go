package oplog

import (
	"hash/maphash"
	"strings"
)

// maxInterned is how many texts an interner has places for at most.
const maxInterned = 1 << 13

// interner remembers what was made of texts that were read lately, so that one that
// comes again takes no more memory: a client has many records, and many records have
// the same URL. Nil remembers nothing.
type interner[V any] []interned[V]

type interned[V any] struct {
	hash  uint64
	text  string
	value V
}

// seed is that of the hashes by which texts are found.
var seed = maphash.MakeSeed()

// intern returns what is to be made of the text that the inside of a string stands for.
func (in interner[V]) intern(raw []byte, escaped bool, of func(text string) V) V {
	if len(in) == 0 || escaped {
		return of(unquote(raw, escaped))
	}
	hash := maphash.Bytes(seed, raw)
	at := &in[hash%uint64(len(in))]
	if at.hash != hash || at.text != string(raw) {
		text := string(raw)
		*at = interned[V]{hash, text, of(text)}
	}
	return at.value
}

// maxArena is the most bytes of a block of an arena.
const maxArena = 32 << 10

// arena makes strings that lie side by side in blocks of some size, for who keeps
// none of them for long. The zero value makes each by itself.
type arena struct {
	size  int
	block strings.Builder
}

// text returns the text that the inside of a string stands for.
func (a *arena) text(raw []byte, escaped bool) string {
	if escaped || len(raw) > a.size {
		return unquote(raw, escaped)
	}
	if a.block.Cap()-a.block.Len() < len(raw) {
		a.block = strings.Builder{}
		a.block.Grow(a.size)
	}
	start := a.block.Len()
	a.block.Write(raw)
	return a.block.String()[start:]
}
