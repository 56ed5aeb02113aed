package store_test

import (
	"fmt"
	"strconv"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// benchChange is a change of one of 100 clients, of an entity and to a URL of the
// usual lengths. Changes with different n are of different entities.
func benchChange(n int, url egress.URL) webhookcfg.Change {
	id := uint64(n) * 0x9E3779B97F4A7C15 // all different, in no order
	entity := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(id), uint16(id>>32), id>>48&0xFFF, id>>52&0xFFF, n)
	return at(n/1000, webhookcfg.Set("client-"+strconv.Itoa(n%100), webhookcfg.Entity(entity), url))
}

func distinctURL(n int) egress.URL {
	return egress.NewURL(fmt.Sprintf("https://hooks.example.com/v1/receive/%032x", n))
}
