package table

import "slices"

const (
	// spanSize is the most records of a span.
	spanSize = 512
	// spanPart is about how many each part has after a span was split.
	spanPart = spanSize / 4
)

// order is the byte order of the ids of records. For each span of neighbouring ids
// it has the numbers of their records, in any order: a walk sorts them. The zero
// value is the order of no ids.
type order struct {
	spans [][]uint32
	// bounds[i] is the least id that can be in spans[i+1].
	bounds []string
}

// span returns the number of the span to which id belongs.
func (o *order) span(id string) int {
	i, found := slices.BinarySearch(o.bounds, id)
	if found {
		i++
	}
	return i
}

// full reports whether span i must be split before a record is added to it.
func (o *order) full(i int) bool { return i < len(o.spans) && len(o.spans[i]) == spanSize }

// add adds a record to span i.
func (o *order) add(i int, record uint32) {
	if o.spans == nil {
		o.spans = make([][]uint32, 1)
	}
	span := o.spans[i]
	if len(span) == cap(span) {
		span = append(slices.Grow([]uint32(nil), min(2*len(span)+1, spanSize)), span...)
	}
	o.spans[i] = append(span, record)
}

// remove removes a record, and joins spans that have become small.
func (o *order) remove(id string, record uint32) {
	i := o.span(id)
	span := o.spans[i]
	last := len(span) - 1
	span[slices.Index(span, record)] = span[last]
	o.spans[i] = tighten(span[:last])
	o.join(i)
	o.join(i - 1)
}

// renumber gives the record of id another number.
func (o *order) renumber(id string, from, to uint32) {
	span := o.spans[o.span(id)]
	span[slices.Index(span, from)] = to
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
func (o *order) replace(i int, spans [][]uint32, bounds []string) {
	for k, span := range spans {
		spans[k] = tighten(span)
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
