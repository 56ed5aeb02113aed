package main

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// minimalLog shows the least that durable sets can cost. It writes the same records with a
// length and a checksum, makes one write and one sync for all concurrent sets, and keeps a
// map. It can't cancel, compact or recover.
type minimalLog struct {
	disk sync.Mutex // held during a commit, guards file, end and buf
	file *os.File
	end  int64
	buf  []byte

	commits atomic.Int64

	mu      sync.Mutex // guards pending
	pending *batch

	entries sync.RWMutex // guards clients
	clients map[string]map[string]egress.URL
}

// batch has the sets of one commit.
type batch struct {
	changes []webhookcfg.Change
	frames  [][]byte
	done    chan struct{}
	err     error
}

func newBatch(size int) *batch {
	return &batch{
		changes: make([]webhookcfg.Change, 0, size), frames: make([][]byte, 0, size), done: make(chan struct{}),
	}
}

func openMinimal(dir string) (*opened, error) {
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	l := &minimalLog{file: file, pending: newBatch(0), clients: map[string]map[string]egress.URL{}}
	return &opened{
		ways:  []way{{"minimal log", l.apply, l.commits.Load}},
		load:  func(n int) error { return applyAll(l.apply, n, nthSet) },
		url:   func(client, entity string) (string, error) { return l.clients[client][entity].Reveal(), nil },
		close: file.Close,
	}, nil
}

// apply makes a set, and returns once it's durable. The first caller in a batch commits it.
func (l *minimalLog) apply(_ context.Context, c webhookcfg.Change) error {
	frame := frame(c)
	l.mu.Lock()
	b := l.pending
	b.changes, b.frames = append(b.changes, c), append(b.frames, frame)
	first := len(b.frames) == 1
	l.mu.Unlock()
	if first {
		l.commit(b)
	}
	<-b.done
	return b.err
}

// commit waits for the disk, and for callers as long as they keep joining. Then it writes the
// batch.
func (l *minimalLog) commit(b *batch) {
	l.disk.Lock()
	defer l.disk.Unlock()
	defer close(b.done)
	l.waitForOthers()
	l.mu.Lock()
	l.pending = newBatch(len(b.frames))
	l.mu.Unlock()
	l.commits.Add(1)
	b.err = l.write(b)
}

func (l *minimalLog) waitForOthers() {
	for seen := 0; ; {
		runtime.Gosched()
		l.mu.Lock()
		n := len(l.pending.frames)
		l.mu.Unlock()
		if n == seen {
			return
		}
		seen = n
	}
}

// write appends a batch to the file and then adds it to the map.
func (l *minimalLog) write(b *batch) error {
	l.buf = l.buf[:0]
	for _, frame := range b.frames {
		l.buf = append(l.buf, frame...)
	}
	if _, err := l.file.WriteAt(l.buf, l.end); err != nil {
		return err
	}
	if err := syncData(l.file); err != nil {
		return err
	}
	l.end += int64(len(l.buf))
	l.entries.Lock()
	defer l.entries.Unlock()
	for _, c := range b.changes {
		entries := l.clients[c.Client]
		if entries == nil {
			entries = map[string]egress.URL{}
			l.clients[c.Client] = entries
		}
		entries[c.Scope.Entity()] = c.URL
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame returns the record of a set. It has a length, a checksum, the client, the entity, the
// URL and the time.
func frame(c webhookcfg.Change) []byte {
	frame := make([]byte, 8, 256)
	frame = append(append(frame, c.Client...), 0)
	frame = append(append(frame, c.Scope.Entity()...), 0)
	frame = append(frame, c.URL.Reveal()...)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(c.Time.UnixMicro()))
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	return frame
}
