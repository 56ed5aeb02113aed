package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// sink is where a pass puts what it reads. It may not keep the slices.
type sink interface {
	put(client, entity, url []byte, when time.Time)
	len() int
}

// onePass reads a log of sets. It believes what the checksums say, and knows where
// in a line the values are.
func onePass(path string, into sink) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 256<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := putLine(line, into); err != nil {
			return err
		}
	}
	if into.len() != records {
		return fmt.Errorf("a pass found %d records", into.len())
	}
	return nil
}

func putLine(line []byte, into sink) error {
	const crcLen = len(`,"crc":"01234567"}` + "\n")
	body, tail := line[:len(line)-crcLen], line[len(line)-crcLen:]
	if sum := crc32.Checksum(body, castagnoli); sum != hexadecimal(tail[len(`,"crc":"`):][:8]) {
		return errors.New("a line is damaged")
	}
	client, rest := valueAfter(body, `"client":"`)
	entity, rest := valueAfter(rest, `"entity":"`)
	url, rest := valueAfter(rest, `"url":"`)
	when, rest := valueAfter(rest, `"time":"`)
	if rest != nil {
		into.put(client, entity, url, parseTime(when))
	}
	return nil
}

// valueAfter returns the string that follows a key, and what follows it.
func valueAfter(line []byte, key string) (value, rest []byte) {
	at := bytes.Index(line, []byte(key))
	if at < 0 {
		return nil, nil
	}
	rest = line[at+len(key):]
	end := bytes.IndexByte(rest, '"')
	return rest[:end], rest[end+1:]
}

func hexadecimal(digits []byte) (n uint32) {
	for _, d := range digits {
		if d > '9' {
			d -= 'a' - '0' - 10
		}
		n = n<<4 | uint32(d-'0')
	}
	return n
}

func decimal(digits []byte) (n int) {
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// parseTime reads a time in UTC by RFC 3339.
func parseTime(t []byte) time.Time {
	return time.Date(decimal(t[:4]), time.Month(decimal(t[5:7])), decimal(t[8:10]),
		decimal(t[11:13]), decimal(t[14:16]), decimal(t[17:19]), 0, time.UTC)
}

// tableSink is the table that the stores have too.
type tableSink struct {
	table table.Table
	names map[string]string
}

func (s *tableSink) put(client, entity, url []byte, when time.Time) {
	c := webhookcfg.Set(s.name(client), webhookcfg.Entity(string(entity)), egress.NewURL(string(url)))
	c.Time = when
	s.table.Apply(c)
}

// name is the one copy of the name of a client.
func (s *tableSink) name(client []byte) string {
	name, known := s.names[string(client)]
	if !known {
		if s.names == nil {
			s.names = map[string]string{}
		}
		name = string(client)
		s.names[name] = name
	}
	return name
}

func (s *tableSink) len() int { return s.table.Len() }

// mapSink is bare maps, with no times.
type mapSink map[string]map[string]string

func (s mapSink) put(client, entity, url []byte, _ time.Time) {
	entries := s[string(client)]
	if entries == nil {
		entries = map[string]string{}
		s[string(client)] = entries
	}
	entries[string(entity)] = string(url)
}

func (s mapSink) len() (n int) {
	for _, entries := range s {
		n += len(entries)
	}
	return n
}
