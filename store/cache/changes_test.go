package cache_test

import (
	"fmt"
	"strconv"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// entities are few, so that a test can look at all of them.
var entities = []string{"e1", "e2", "e3", "e4"}

func key(client, entity string) string { return client + "/" + entity }

// benchChange returns a change of one of 100 clients, with an entity and a URL of
// typical length. Different n have different entities.
func benchChange(n int) webhookcfg.Change {
	id := uint64(n) * 0x9E3779B97F4A7C15 // distinct, in no order
	entity := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(id), uint16(id>>32), id>>48&0xFFF, id>>52&0xFFF, n)
	url := egress.NewURL(fmt.Sprintf("https://hooks.example.com/v1/receive/%032x", n))
	return hooktest.At(n/1000, webhookcfg.SetChange("client-"+strconv.Itoa(n%100), webhookcfg.Entity(entity), url))
}
