package table

// inlineID is the most bytes of an id that lie in its record: UUIDs do. With it a
// record of an override has 56 bytes.
const inlineID = 39

// record is one entry of an ordered map. The id lies beside the value, so that one
// look at memory finds both.
type record[V any] struct {
	value V
	size  uint8 // of the id; longID: the id is in records.long
	id    [inlineID]byte
}

const longID = 0xFF

// records are the entries of an ordered map, numbered from 0 without a gap.
type records[V any] struct {
	long map[uint32][]byte // the ids that are too long for their records
	list[record[V]]
}

// add adds an entry and returns its number.
func (r *records[V]) add(id string, v V) uint32 {
	n := uint32(r.len())
	added := record[V]{value: v, size: longID}
	if len(id) <= inlineID {
		added.size = uint8(copy(added.id[:], id))
	} else {
		r.keep(n, []byte(id))
	}
	r.push(added)
	return n
}

func (r *records[V]) keep(n uint32, id []byte) {
	if r.long == nil {
		r.long = make(map[uint32][]byte)
	}
	r.long[n] = id
}

// id returns the id of entry n, valid until the entries change.
func (r *records[V]) id(n uint32) []byte {
	rec := r.at(n)
	if rec.size == longID {
		return r.long[n]
	}
	return rec.id[:rec.size]
}

// has reports whether rec, which is entry n, has the id.
func (r *records[V]) has(rec *record[V], n uint32, id string) bool {
	if rec.size == longID {
		return string(r.long[n]) == id
	}
	return string(rec.id[:rec.size]) == id
}

// dropLast removes the last entry.
func (r *records[V]) dropLast() {
	delete(r.long, uint32(r.len()-1))
	r.pop()
}

// moveLast makes the last entry entry n, in place of the one that was.
func (r *records[V]) moveLast(n uint32) {
	last := uint32(r.len() - 1)
	delete(r.long, n)
	if r.at(last).size == longID {
		r.keep(n, r.long[last])
	}
	*r.at(n) = *r.at(last)
	r.dropLast()
}
