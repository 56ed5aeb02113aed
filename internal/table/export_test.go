package table

// MaxSpan is the most keys of a span.
const MaxSpan = maxSpan

// MinInterned is the number of records from which on equal URLs share memory, and MaxInterned
// how many URLs are remembered for that.
const (
	MinInterned = minInterned
	MaxInterned = maxInterned
)

// Spans returns the number of keys of each span of a client's overrides.
func (t *Table) Spans(client string) (lens []int) {
	for _, span := range t.clients.values[client].overrides.keys.spans {
		lens = append(lens, len(span))
	}
	return lens
}
