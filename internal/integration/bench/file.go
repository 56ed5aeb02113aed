package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func openFile(dir string) (*opened, error) {
	path := filepath.Join(dir, "webhooks.jsonl")
	file, err := openStore(path)
	if err != nil {
		return nil, err
	}
	groups := &groupCounter{path: path}
	return &opened{
		ways: []way{{"**store.File**", file.Apply, groups.count}},
		load: func(n int) error { return applyAll(file.Apply, n, nthSet) },
		url: func(client, entity string) (string, error) {
			hook, err := file.Resolve(context.Background(), client, entity)
			return hook.URL.Reveal(), err
		},
		close: file.Close,
	}, nil
}

// openStore opens a store that isn't compacted unless you call Compact.
func openStore(path string) (*store.File, error) {
	return store.OpenFile(path, &store.FileOptions{CompactManually: true})
}

// makeStore creates a store with the first n sets, and closes it.
func makeStore(path string, n int, nth func(int) webhookcfg.Change) error {
	file, err := openStore(path)
	if err != nil {
		return err
	}
	return errors.Join(applyAll(file.Apply, n, nth), file.Close())
}

// groupCounter counts the commits of a log by reading it: all lines of a commit have the same
// "synced".
type groupCounter struct {
	path   string
	offset int64
	last   string
	groups int64
}

// count reads the lines that were appended since the last call, and returns the number of
// commits so far.
func (g *groupCounter) count() int64 {
	file, err := os.Open(g.path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, g.offset, math.MaxInt64-g.offset), 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil || len(line) == 1 { // the preallocated tail
			return g.groups
		}
		g.offset += int64(len(line))
		_, rest, _ := bytes.Cut(line, []byte(`,"synced":`))
		if synced, _, _ := bytes.Cut(rest, []byte(`,`)); string(synced) != g.last {
			g.last = string(synced)
			g.groups++
		}
	}
}

// clients is how many clients share the records.
const clients = 100

var since = time.Unix(1767323045, 0)

// nthSet is the n-th set. The entity has 36 characters and the URL 70, and both are distinct.
// It must be cheap, because writers call it while they're measured.
func nthSet(n int) webhookcfg.Change { return nthSetOf(clientName(n), n) }

func nthSetOf(client string, n int) webhookcfg.Change {
	c := webhookcfg.SetChange(client, webhookcfg.Entity(nthEntity(n)), egress.NewURL(nthURL(n)))
	c.Time = since.Add(time.Duration(n)*time.Millisecond + 123*time.Microsecond)
	return c
}

func clientName(n int) string { return "client-" + strconv.Itoa(n%clients) }

// nthEntity looks like a UUID. The entities are in no particular order.
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

// appendDigits appends n with this many digits.
func appendDigits(b []byte, n uint64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	for range width - len(text) {
		b = append(b, '0')
	}
	return append(b, text...)
}
