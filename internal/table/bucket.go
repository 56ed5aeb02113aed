package table

// slots is how many records a bucket has room for: it fills one cache line.
const slots = 12

// bucket has the numbers of records whose ids have a part of their hashes in common.
type bucket struct {
	records [slots]uint32
	tags    [slots]uint8 // another part of each hash; 0: the slot is empty
	// overflow is the number, counted from 1, of the bucket that has what found no
	// room here; 0: none.
	overflow uint32
}

// add adds a record, and reports whether there was room for it.
func (b *bucket) add(tag uint8, record uint32) bool {
	for i := range b.tags {
		if b.tags[i] == 0 {
			b.tags[i], b.records[i] = tag, record
			return true
		}
	}
	return false
}
