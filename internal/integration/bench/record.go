package main

import (
	"encoding/hex"
	"math/bits"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// clients is how many clients the records are dealt to.
const clients = 100

// nthSet is a set of an id of 36 characters and a URL of 70, each n with its own.
// It is cheap: whoever makes sets also pays for making them up.
func nthSet(n int) webhookcfg.Change {
	c := webhookcfg.Set(clientName(n%clients), webhookcfg.Entity(nthEntity(n)), egress.NewURL(nthURL(n)))
	c.Time = since.Add(time.Duration(n/1000) * time.Second)
	return c
}

// nthEntity looks like a UUID. They come in no order.
func nthEntity(n int) string {
	scattered := bits.Reverse64(uint64(n)) ^ uint64(n)*0x9E3779B97F4A7C15
	id := []byte("00000000-0000-4000-8000-")
	id = appendDigits(id, uint64(n), 12)
	var digits [16]byte
	hex.Encode(digits[:], []byte{
		byte(scattered >> 56), byte(scattered >> 48), byte(scattered >> 40), byte(scattered >> 32),
		byte(scattered >> 24), byte(scattered >> 16), byte(scattered >> 8), byte(scattered),
	})
	copy(id, digits[:8])
	copy(id[9:], digits[8:12])
	copy(id[15:], digits[12:15])
	return string(id)
}

func nthURL(n int) string {
	return string(appendDigits([]byte("https://hooks.example.com/services/"), uint64(n), 35))
}

// appendDigits appends n with that many digits.
func appendDigits(b []byte, n uint64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	for range width - len(text) {
		b = append(b, '0')
	}
	return append(b, text...)
}
