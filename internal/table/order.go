package table

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// ordered is a map whose keys can be walked in byte order from any of them. The zero
// value is empty.
type ordered[V any] struct {
	items map[string]*item[V]
	order order[V]
}

// item is an entry of an ordered map.
type item[V any] struct {
	key   string
	value V
}

func (m *ordered[V]) len() int { return len(m.items) }

// get returns the value of the key, nil if there is none.
func (m *ordered[V]) get(key string) *V {
	if it := m.items[key]; it != nil {
		return &it.value
	}
	return nil
}

// add returns the value of the key, a new one if there was none. It keeps a copy of
// the key, which may be part of something larger.
func (m *ordered[V]) add(key string) *V {
	if v := m.get(key); v != nil {
		return v
	}
	if m.items == nil {
		m.items = make(map[string]*item[V])
	}
	it := &item[V]{key: strings.Clone(key)}
	m.items[it.key] = it
	m.order.add(it)
	return &it.value
}

func (m *ordered[V]) delete(key string) {
	it := m.items[key]
	switch {
	case it == nil:
	case len(m.items) == 1:
		*m = ordered[V]{} // a map does not shrink when its keys are deleted
	default:
		delete(m.items, key)
		m.order.remove(it)
	}
}

// after walks the entries whose keys come after the given one. The map must not
// change during the walk.
func (m *ordered[V]) after(key string) iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for it := range m.order.after(key) {
			if !yield(it.key, &it.value) {
				return
			}
		}
	}
}

// maxSpan is the most items of a span.
const maxSpan = 256

// order is the items of an ordered map, cut into spans by their keys. Within a span
// they are in no order: to sort them when a walk comes to it costs less than to keep
// them sorted. The zero value is empty.
type order[V any] struct {
	spans [][]*item[V]
	// bounds[i] is the least key that belongs in spans[i+1], and greater than all that
	// belong in spans[i].
	bounds []string
}

// find returns the span in which the key belongs.
func (o *order[V]) find(key string) int {
	i, equal := slices.BinarySearch(o.bounds, key)
	if equal {
		i++
	}
	return i
}

func (o *order[V]) add(it *item[V]) {
	if o.spans == nil {
		o.spans = make([][]*item[V], 1)
	}
	i := o.find(it.key)
	if len(o.spans[i]) == maxSpan {
		o.split(i)
		i = o.find(it.key)
	}
	o.spans[i] = append(o.spans[i], it)
}

// split cuts span i in two at about the median of its keys, which is that of a sample.
func (o *order[V]) split(i int) {
	var sample []string
	for n := 0; n < maxSpan; n += maxSpan / 32 {
		sample = append(sample, o.spans[i][n].key)
	}
	slices.Sort(sample)
	bound := sample[len(sample)/2]
	low, high := make([]*item[V], 0, maxSpan), make([]*item[V], 0, maxSpan)
	for _, it := range o.spans[i] {
		if it.key < bound {
			low = append(low, it)
		} else {
			high = append(high, it)
		}
	}
	o.spans = slices.Replace(o.spans, i, i+1, low, high)
	o.bounds = slices.Insert(o.bounds, i, bound)
}

func (o *order[V]) remove(it *item[V]) {
	i := o.find(it.key)
	span := o.spans[i]
	at, last := slices.Index(span, it), len(span)-1
	span[at], span[last] = span[last], nil
	o.spans[i] = span[:last]
	o.join(i)
	o.join(i - 1)
}

// join makes one span of span i and the next if together they are at most half full.
func (o *order[V]) join(i int) {
	if i < 0 || i+1 >= len(o.spans) || len(o.spans[i])+len(o.spans[i+1]) > maxSpan/2 {
		return
	}
	o.spans = slices.Replace(o.spans, i, i+2, slices.Concat(o.spans[i], o.spans[i+1]))
	o.bounds = slices.Delete(o.bounds, i, i+1)
}

// after walks the items whose keys come after the given one.
func (o *order[V]) after(key string) iter.Seq[*item[V]] {
	return func(yield func(*item[V]) bool) {
		for i := o.find(key); i < len(o.spans); i++ {
			for _, it := range slices.SortedFunc(slices.Values(o.spans[i]), compare) {
				if it.key > key && !yield(it) {
					return
				}
			}
		}
	}
}

func compare[V any](x, y *item[V]) int { return cmp.Compare(x.key, y.key) }
