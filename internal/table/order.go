package table

import "slices"

const (
	// spanSize is the most ids of a span.
	spanSize = 512
	// spanPart is about how many each part has after a span was split.
	spanPart = spanSize / 4
)

// order is the byte order of the ids in a hash table. It keeps no id itself: for
// each span of neighbouring ids it has their hashes, in any order, by which a walk
// finds the ids and sorts them. The zero value is the order of no ids.
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

// full reports whether span i must be split before an id is added to it.
func (o *order) full(i int) bool { return i < len(o.spans) && len(o.spans[i]) == spanSize }

// add adds an id with the hash to span i.
func (o *order) add(i int, h hash) {
	if o.spans == nil {
		o.spans = make([][]hash, 1)
	}
	o.spans[i] = append(reserve(o.spans[i], 1), h)
}

// remove removes an id with the hash, and joins spans that have become small.
func (o *order) remove(id string, h hash) {
	i := o.span(id)
	hashes := o.spans[i]
	last := len(hashes) - 1
	hashes[slices.Index(hashes, h)] = hashes[last]
	o.spans[i] = tighten(hashes[:last])
	o.join(i)
	o.join(i - 1)
}

// join makes one span of span i and the next one if few ids are left in both.
func (o *order) join(i int) {
	if i < 0 || i+1 >= len(o.spans) || len(o.spans[i])+len(o.spans[i+1]) > spanPart {
		return
	}
	joined := slices.Concat(o.spans[i], o.spans[i+1])
	o.spans = tighten(slices.Replace(o.spans, i, i+2, joined))
	o.bounds = tighten(slices.Delete(o.bounds, i, i+1))
}

// replace puts spans in place of span i, with bounds between them.
func (o *order) replace(i int, spans [][]hash, bounds []string) {
	for k, hashes := range spans {
		spans[k] = slices.Clone(hashes) // without room to spare
	}
	o.spans = slices.Replace(o.spans, i, i+1, spans...)
	o.bounds = slices.Insert(o.bounds, i, bounds...)
}

// bound returns the shortest id that is greater than low, and not than high.
func bound(low, high []byte) string {
	n := 0
	for n < len(low) && low[n] == high[n] {
		n++
	}
	return string(high[:n+1])
}

func count(hashes []hash, h hash) (n int) {
	for _, x := range hashes {
		if x == h {
			n++
		}
	}
	return n
}
