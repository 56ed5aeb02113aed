package main

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// minimalLog is what durable sets can cost at the least: the same records, framed
// and with a checksum, in groups that the first writer to come gathers and syncs, and
// a map. It does nothing about cancellation, compaction or recovery.
type minimalLog struct {
	file   *os.File
	end    int64 // where the next group goes
	buf    []byte
	gather *gather[framed]

	mu      sync.RWMutex
	clients map[string]map[string]egress.URL
}

// framed is a change with its record.
type framed struct {
	change webhookcfg.Change
	frame  []byte
}

func openMinimalLog(dir string) (*minimalLog, error) {
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	l := &minimalLog{file: file, clients: map[string]map[string]egress.URL{}}
	l.gather = newGather(l.commit)
	return l, nil
}

func openMinimal(dir string) (*contender, error) {
	l, err := openMinimalLog(dir)
	if err != nil {
		return nil, err
	}
	return &contender{
		ways:  []way{{"minimal log", l.Apply, l.gather.commits.Load}},
		load:  func(n int) error { return applyAll(l.Apply, n, nthSet) },
		url:   func(client, entity string) (string, error) { return l.clients[client][entity].Reveal(), nil },
		close: l.Close,
	}, nil
}

// Apply sets what one entity has.
func (l *minimalLog) Apply(_ context.Context, c webhookcfg.Change) error {
	return l.gather.add(framed{c, frame(c)})
}

func (l *minimalLog) Close() error { return l.file.Close() }

func (l *minimalLog) commit(all []framed) error {
	l.buf = l.buf[:0]
	for _, f := range all {
		l.buf = append(l.buf, f.frame...)
	}
	if _, err := l.file.WriteAt(l.buf, l.end); err != nil {
		return err
	}
	if err := syncData(l.file); err != nil {
		return err
	}
	l.end += int64(len(l.buf))
	l.remember(all)
	return nil
}

func (l *minimalLog) remember(all []framed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range all {
		entries := l.clients[f.change.Client]
		if entries == nil {
			entries = map[string]egress.URL{}
			l.clients[f.change.Client] = entries
		}
		entries[f.change.Scope.Entity()] = f.change.URL
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame returns the record of a set: length, checksum, client, entity, URL, time.
func frame(c webhookcfg.Change) []byte {
	frame := make([]byte, 8, 256)
	frame = append(append(frame, c.Client...), 0)
	frame = append(append(frame, c.Scope.Entity()...), 0)
	frame = append(frame, c.URL.Reveal()...)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(c.Time.Unix()))
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	return frame
}
