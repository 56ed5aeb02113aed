package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

func openFile(dir string) (*contender, error) {
	path := filepath.Join(dir, "webhooks.jsonl")
	file, err := openStore(path)
	if err != nil {
		return nil, err
	}
	groups := &groupCounter{path: path}
	return &contender{
		ways: []way{{"**store.File**", file.Apply, groups.count}},
		load: func(n int) error { return applyAll(file.Apply, n, nthSet) },
		url: func(client, entity string) (string, error) {
			hook, err := file.Resolve(context.Background(), client, entity)
			return hook.URL.Reveal(), err
		},
		close: file.Close,
	}, nil
}

// openStore opens a store that is compacted only when it is told.
func openStore(path string) (*store.File, error) {
	return store.OpenFile(path, &store.FileOptions{CompactRatio: -1})
}

// makeStore leaves a closed store of the first n sets.
func makeStore(path string, n int, nth func(int) webhookcfg.Change) error {
	file, err := openStore(path)
	if err != nil {
		return err
	}
	return errors.Join(applyAll(file.Apply, n, nth), file.Close())
}

// groupCounter counts the groups of a log by the log itself: all lines that were
// made durable by one sync have the same "synced".
type groupCounter struct {
	path   string
	offset int64
	last   string
	groups int64
}

// count reads what was appended since the last call.
func (g *groupCounter) count() int64 {
	file, err := os.Open(g.path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, g.offset, math.MaxInt64-g.offset), 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil || len(line) == 1 { // the room that was made ahead
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
