package table

import (
	"iter"
	"slices"
	"strings"
)

// ordered is a map that you can walk in byte order, starting after any key. The zero value is
// empty.
type ordered[V any] struct {
	values map[string]V
	keys   order
}

func (m *ordered[V]) len() int { return len(m.values) }

// set sets the value of a key. If the key was known, it returns the old value. If not, it
// keeps a copy of the key, which may be a part of something larger.
func (m *ordered[V]) set(key string, value V) (old V, known bool) {
	if m.values == nil {
		m.values = make(map[string]V)
	}
	if old, known = m.values[key]; !known {
		key = strings.Clone(key)
		m.keys.add(key)
	}
	m.values[key] = value
	return old, known
}

// delete deletes a key and returns its value, if the key was known.
func (m *ordered[V]) delete(key string) (old V, known bool) {
	old, known = m.values[key]
	switch {
	case !known:
	case len(m.values) == 1:
		*m = ordered[V]{} // a map doesn't shrink when you delete its keys
	default:
		delete(m.values, key)
		m.keys.remove(key)
	}
	return old, known
}

// after walks the entries with keys after the given one. Don't change the map during the
// walk.
func (m *ordered[V]) after(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for key := range m.keys.after(key) {
			if !yield(key, m.values[key]) {
				return
			}
		}
	}
}

// maxSpan is how many keys a span can have.
const maxSpan = 256

// order is a set of keys, cut into spans by their byte order. Within a span the keys aren't
// in order. It's cheaper to sort them when a walk gets there than to keep them sorted. The
// zero value is empty.
type order struct {
	spans [][]string
	// bounds[i] is the lower bound of the keys in spans[i+1]. The keys in spans[i] are all
	// less.
	bounds []string
}

// find returns the span in which the key belongs.
func (o *order) find(key string) int {
	i, equal := slices.BinarySearch(o.bounds, key)
	if equal {
		i++
	}
	return i
}

// add adds a key that is not in the set.
func (o *order) add(key string) {
	if o.spans == nil {
		o.spans = make([][]string, 1)
	}
	i := o.find(key)
	if len(o.spans[i]) == maxSpan {
		o.split(i)
		i = o.find(key)
	}
	o.spans[i] = append(o.spans[i], key)
}

// split cuts span i in two, at the median of a sample of its keys.
func (o *order) split(i int) {
	var sample []string
	for n := 0; n < maxSpan; n += maxSpan / 32 {
		sample = append(sample, o.spans[i][n])
	}
	slices.Sort(sample)
	bound := sample[len(sample)/2]
	low, high := make([]string, 0, maxSpan), make([]string, 0, maxSpan)
	for _, key := range o.spans[i] {
		if key < bound {
			low = append(low, key)
		} else {
			high = append(high, key)
		}
	}
	o.spans = slices.Replace(o.spans, i, i+1, low, high)
	o.bounds = slices.Insert(o.bounds, i, bound)
}

// remove removes a key that is in the set.
func (o *order) remove(key string) {
	i := o.find(key)
	span := o.spans[i]
	at, last := slices.Index(span, key), len(span)-1
	span[at], span[last] = span[last], ""
	o.spans[i] = span[:last]
	o.join(i)
	o.join(i - 1)
}

// join joins span i with the next one if both together are at most half full.
func (o *order) join(i int) {
	if i < 0 || i+1 >= len(o.spans) || len(o.spans[i])+len(o.spans[i+1]) > maxSpan/2 {
		return
	}
	o.spans = slices.Replace(o.spans, i, i+2, slices.Concat(o.spans[i], o.spans[i+1]))
	o.bounds = slices.Delete(o.bounds, i, i+1)
}

// after walks the keys after the given one.
func (o *order) after(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := o.find(key); i < len(o.spans); i++ {
			for _, next := range slices.Sorted(slices.Values(o.spans[i])) {
				if next > key && !yield(next) {
					return
				}
			}
		}
	}
}
