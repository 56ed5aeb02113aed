package table

import "example.com/go-webhookcfg/webhookcfg/egress"

// maxInterned is the most URLs that an urlInterner remembers.
const maxInterned = 4096

// urlInterner remembers URLs that were set recently, so that equal ones share memory.
// When it is full it starts again from scratch, which costs memory only: a forgotten
// URL is stored once more. It is bounded because a table may hold millions of URLs
// that are all different; package unique, which remembers each of them, takes four
// times as long to fill such a table and twice the memory.
type urlInterner map[string]egress.URL

// intern returns a URL equal to u, an earlier one if that is remembered.
func (in urlInterner) intern(u egress.URL) egress.URL {
	if known, ok := in[u.Reveal()]; ok {
		return known
	}
	if len(in) == maxInterned {
		clear(in)
	}
	in[u.Reveal()] = u
	return u
}
