package table

import (
	"bytes"
	"hash/maphash"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// recent knows some thousands of URLs that were set lately, so that equal ones
// share memory. It only saves space: a URL that is forgotten is stored once more.
type recent [512]urlSet

var seed = maphash.MakeSeed()

// urlSet is the last of the URLs whose hashes have a part in common.
type urlSet struct {
	tags   [15]uint8 // another part of each hash
	oldest uint8
	urls   [15]egress.URL
}

// share returns a URL equal to u, an earlier one if that is still known.
func (r *recent) share(u egress.URL) egress.URL {
	h := maphash.String(seed, u.Reveal())
	return r[h%uint64(len(r))].share(u, uint8(h>>32))
}

func (s *urlSet) share(u egress.URL, tag uint8) egress.URL {
	for i := 0; i < len(s.tags); i++ {
		found := bytes.IndexByte(s.tags[i:], tag)
		if found < 0 {
			break
		}
		i += found
		if s.urls[i].Equal(u) {
			return s.urls[i]
		}
	}
	s.tags[s.oldest], s.urls[s.oldest] = tag, u
	s.oldest = (s.oldest + 1) % uint8(len(s.urls))
	return u
}
