package main

import (
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// clients is how many clients the entries are dealt to.
const clients = 100

var since = time.Unix(1767323045, 0)

func clientName(n int) string { return fmt.Sprintf("client-%d", n%clients) }

// entityName has 36 characters, like a UUID. They come in no order.
func entityName(n int) string {
	scattered := uint64(n+1) * 0x9E3779B97F4A7C15
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(scattered>>32), uint16(scattered>>16), n)
}

// hookURL has 70 characters.
func hookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/services/%035d", n) }

// nthSet is a set of one entity, each n with its own.
func nthSet(n int) webhookcfg.Change { return nthSetOf(clientName(n), n) }

func nthSetOf(client string, n int) webhookcfg.Change {
	return timed(webhookcfg.Set(client, webhookcfg.Entity(entityName(n)), egress.NewURL(hookURL(n))))
}

func timed(c webhookcfg.Change) webhookcfg.Change {
	c.Time = since
	return c
}
