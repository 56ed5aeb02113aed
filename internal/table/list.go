package table

import "slices"

// pieceSize is the most elements of one piece of a list.
const pieceSize = 1 << pieceBits

const pieceBits = 11

// list is a slice in pieces: it grows and shrinks without moving all it holds.
// The zero value is empty.
type list[T any] struct {
	size   int
	pieces [][]T // all but the last have pieceSize elements, and the last has one at least
}

func (l *list[T]) len() int { return l.size }

func (l *list[T]) at(i uint32) *T { return &l.pieces[i>>pieceBits][i&(pieceSize-1)] }

// push adds an element at the end. What at returned before may be a copy then.
func (l *list[T]) push(v T) {
	last := len(l.pieces) - 1
	if last < 0 || len(l.pieces[last]) == pieceSize {
		l.pieces = append(l.pieces, nil)
		last++
	}
	piece := l.pieces[last]
	if len(piece) == cap(piece) {
		piece = append(slices.Grow([]T(nil), roomAfter(last, len(piece))), piece...)
	}
	l.pieces[last] = append(piece, v)
	l.size++
}

// roomAfter returns for how many elements a piece of n has room next. There may be
// many lists of few elements, so these spare memory; longer ones spare copying.
func roomAfter(piece, n int) int {
	if n >= pieceSize/2 || n == 0 && piece > 0 {
		return pieceSize
	}
	return n + n/2 + 1
}

// pop removes the last element.
func (l *list[T]) pop() {
	last := len(l.pieces) - 1
	piece := l.pieces[last]
	clear(piece[len(piece)-1:])
	l.size--
	if piece = tighten(piece[:len(piece)-1]); len(piece) > 0 {
		l.pieces[last] = piece
		return
	}
	l.pieces[last] = nil
	l.pieces = tighten(l.pieces[:last])
}

// tighten gives room back when more than half of it is unused.
func tighten[S ~[]E, E any](s S) S {
	if cap(s) <= 2*len(s)+8 {
		return s
	}
	return slices.Clone(s)
}
