package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// opener is a way to read a large store.
type opener struct {
	name   string
	cores  int // how many it can use
	read   func(path string) error
	budget string // for its time, divided by the time of the pass
	took   []float64
}

// thePass is the reference's index in the openers.
const thePass = 2

func openers(records int) []*opener {
	return []*opener{
		{name: "**store.OpenFile**, all cores", cores: runtime.NumCPU(), read: openAndClose, budget: "≤ 0.7 with two cores"},
		{name: "**store.OpenFile**, one core", cores: 1, read: openAndClose, budget: "≤ 1.2"},
		thePass: {name: "one pass into the same table", cores: 1, read: func(path string) error { return onePass(path, records) }},
	}
}

func openAndClose(path string) error {
	file, err := openStore(path)
	if err != nil {
		return err
	}
	return file.Close()
}

// opening compares opening a store with one bare pass over its file, which only verifies
// checksums, scans for the values by hand and inserts them into memory.
func opening(s settings, r *report) error {
	r.section("Opening", "The time to open a store of "+grouped(s.records)+` records, compared with one pass over its file on
one core. The pass only verifies the checksums, finds the values at known places, and
inserts them.`)
	for _, urls := range []int{s.records, 1000} {
		if err := s.open(r, urls); err != nil {
			return err
		}
	}
	return nil
}

// open measures the openers on a store with this many different URLs.
func (s settings) open(r *report, urls int) error {
	nth := func(n int) webhookcfg.Change {
		c := nthSet(n)
		c.URL = egress.NewURL(nthURL(n % urls))
		return c
	}
	return inTempDir(func(dir string) error {
		path := filepath.Join(dir, "webhooks.jsonl")
		if err := makeStore(path, s.records, nth); err != nil {
			return err
		}
		all := openers(s.records)
		for range s.rounds {
			for _, o := range all {
				if err := o.run(path); err != nil {
					return fmt.Errorf("%s: %w", o.name, err)
				}
			}
		}
		var rows [][]string
		for _, o := range all {
			rows = append(rows, []string{o.name, precise(median(o.took)) + " s", spread(quotients(o.took, all[thePass].took)), o.budget})
		}
		r.table([]string{grouped(urls) + " distinct URLs", "time", "÷ the pass into the same table", "budget"}, rows...)
		return s.residentTable(r, path)
	})
}

func (o *opener) run(path string) error {
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.cores))
	start := time.Now()
	err := o.read(path)
	o.took = append(o.took, time.Since(start).Seconds())
	return err
}

// residentTable opens the store in other processes, one after the other, and adds a table of
// their memory.
func (s settings) residentTable(r *report, path string) error {
	var peaks, stays []float64
	for range s.rounds {
		peak, stay, err := residentMemory(path)
		if err != nil {
			return err
		}
		if stay == 0 {
			return nil // the system doesn't report it
		}
		peaks, stays = append(peaks, peak), append(stays, stay)
	}
	r.table([]string{"resident memory of a process that opens the store", "at most", "afterwards", "ratio", "budget"},
		[]string{"**store.OpenFile**, all cores", rounded(median(peaks)) + " MiB", rounded(median(stays)) + " MiB", spread(quotients(peaks, stays)), "≤ 1.4"})
	return nil
}

// residentMemory runs printMemory in another process. It returns how many MiB opening the
// store adds to the process's memory, at the peak and afterwards.
func residentMemory(path string) (peak, stays float64, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	command := exec.Command(program, "-memory", path)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return 0, 0, err
	}
	var before float64
	_, err = fmt.Fscan(bytes.NewReader(printed), &before, &peak, &stays)
	return (peak - before) / 1024, (stays - before) / 1024, err
}

// printMemory opens a store and prints how much memory is resident, in KiB: before, at the
// peak, and after garbage was returned to the system.
func printMemory(path string) error {
	before := memory("VmRSS:")
	file, err := openStore(path)
	if err != nil {
		return err
	}
	peak := memory("VmHWM:")
	debug.FreeOSMemory()
	fmt.Println(before, peak, memory("VmRSS:"))
	runtime.KeepAlive(file)
	return file.Close()
}

// memory returns a figure that Linux reports about this process, or 0 on other systems.
func memory(field string) (kib int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), field)
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}

// onePass reads a log of sets. If a line's checksum is valid, it trusts that the line has the
// known form.
func onePass(path string, records int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var into sink
	lines := bufio.NewReaderSize(file, 256<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := into.putLine(line); err != nil {
			return err
		}
	}
	if into.table.Len() != records {
		return fmt.Errorf("pass found %d records", into.table.Len())
	}
	return nil
}

func (s *sink) putLine(line []byte) error {
	const crcLen = len(`,"crc":"01234567"}` + "\n")
	body, tail := line[:len(line)-crcLen], line[len(line)-crcLen:]
	if sum := crc32.Checksum(body, castagnoli); sum != hexadecimal(tail[len(`,"crc":"`):][:8]) {
		return errors.New("damaged line")
	}
	client, rest := valueAfter(body, `"client":"`)
	entity, rest := valueAfter(rest, `"entity":"`)
	url, rest := valueAfter(rest, `"url":"`)
	when, rest := valueAfter(rest, `"time":"`)
	if rest != nil {
		s.put(client, entity, url, parseTime(when))
	}
	return nil
}

// valueAfter returns the string after a key, and the rest of the line.
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

// parseTime parses a UTC time with microseconds (RFC 3339).
func parseTime(t []byte) time.Time {
	return time.Date(decimal(t[:4]), time.Month(decimal(t[5:7])), decimal(t[8:10]),
		decimal(t[11:13]), decimal(t[14:16]), decimal(t[17:19]), 1000*decimal(t[20:26]), time.UTC)
}

// sink is the table that the library's stores use. It copies the slices that you pass.
type sink struct {
	table table.Table
	names map[string]string
}

func (s *sink) put(client, entity, url []byte, when time.Time) {
	c := webhookcfg.SetChange(s.name(client), webhookcfg.Entity(string(entity)), egress.NewURL(string(url)))
	c.Time = when
	s.table.Apply(c)
}

// name returns the client's name as a string. Each name is stored only once.
func (s *sink) name(client []byte) string {
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
