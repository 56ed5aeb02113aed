package table

import (
	"slices"
	"strings"
)

const (
	// spanSize is the most ids of one span.
	spanSize = 512
	// spanPart is how many of them each new span has after a split.
	spanPart = spanSize / 4
)

// order knows the byte order of the ids in a hash table and keeps no id itself.
// For each span of neighbouring ids it has their hashes, in no order: with these
// the ids are found and sorted when somebody walks them.
type order struct {
	spans [][]hash
	// bounds[i] is the least id that can be in spans[i+1].
	bounds []string
}

// span returns the index of the span to which id belongs.
func (o *order) span(id string) int {
	i, found := slices.BinarySearch(o.bounds, id)
	if found {
		i++
	}
	return i
}

// holds reports whether id belongs to span i.
func (o *order) holds(i int, id []byte) bool {
	return (i == 0 || o.bounds[i-1] <= string(id)) && (i == len(o.bounds) || string(id) < o.bounds[i])
}

// add adds the hash of an id of span i.
func (o *order) add(i int, h hash) {
	if o.spans == nil {
		o.spans = [][]hash{nil}
	}
	o.spans[i] = append(reserve(o.spans[i], 1), h)
}

// full reports whether span i must be split before an id is added.
func (o *order) full(i int) bool {
	return i < len(o.spans) && len(o.spans[i]) == spanSize
}

// replace puts several spans, and the bounds between them, in place of span i.
func (o *order) replace(i int, spans [][]hash, bounds []string) {
	o.spans = slices.Replace(o.spans, i, i+1, spans...)
	o.bounds = slices.Insert(o.bounds, i, bounds...)
}

// remove removes the hash of id.
func (o *order) remove(id string, h hash) {
	i := o.span(id)
	span := o.spans[i]
	last := len(span) - 1
	span[slices.Index(span, h)] = span[last]
	o.spans[i] = tighten(span[:last])
	o.join(i)
	o.join(i - 1)
}

// join makes one span of span i and the next one if few ids are left in both.
func (o *order) join(i int) {
	if i < 0 || i+1 >= len(o.spans) || len(o.spans[i])+len(o.spans[i+1]) > spanPart {
		return
	}
	o.spans[i] = slices.Concat(o.spans[i], o.spans[i+1])
	o.spans = tighten(slices.Delete(o.spans, i+1, i+2))
	o.bounds = tighten(slices.Delete(o.bounds, i, i+1))
}

// bound returns the shortest string that is above low, but not above high.
func bound(low, high string) string {
	n := 0
	for n < len(low) && low[n] == high[n] {
		n++
	}
	return strings.Clone(high[:n+1])
}
