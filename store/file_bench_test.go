package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
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

// minimalLog is what durable sets can cost at the least: the same records, framed
// and with a checksum, in groups that the first writer to come gathers and syncs, and a
// map. It does nothing about room, cancellation, compaction or recovery.
type minimalLog struct {
	file *os.File
	end  int64

	mu      sync.Mutex
	led     bool
	frames  []byte
	changes []webhookcfg.Change
	done    chan struct{}

	reading sync.RWMutex
	clients map[string]map[string]egress.URL
}

func openMinimalLog(b *testing.B) *minimalLog {
	file, err := os.Create(filepath.Join(b.TempDir(), "minimal"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	return &minimalLog{file: file, done: make(chan struct{}), clients: map[string]map[string]egress.URL{}}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func frame(c webhookcfg.Change) []byte {
	frame := make([]byte, 8, 256)
	frame = append(frame, c.Client...)
	frame = append(frame, 0)
	frame = append(frame, c.Scope.Entity()...)
	frame = append(frame, 0)
	frame = append(frame, c.URL.Reveal()...)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(c.Time.Unix()))
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	return frame
}

func (l *minimalLog) Apply(_ context.Context, c webhookcfg.Change) error {
	frame := frame(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = append(l.frames, frame...)
	l.changes = append(l.changes, c)
	done := l.done
	if l.led {
		l.mu.Unlock()
		<-done
		l.mu.Lock()
		return nil
	}
	l.led = true
	for len(l.changes) > 0 {
		if err := l.lead(); err != nil {
			return err
		}
	}
	l.led = false
	return nil
}

// lead writes one group. It gives up mu meanwhile.
func (l *minimalLog) lead() error {
	for seen := 0; seen < len(l.changes); {
		seen = len(l.changes)
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	frames, changes, done := l.frames, l.changes, l.done
	l.frames, l.changes, l.done = make([]byte, 0, cap(frames)), make([]webhookcfg.Change, 0, cap(changes)), make(chan struct{})
	l.mu.Unlock()
	defer l.mu.Lock()
	if _, err := l.file.WriteAt(frames, l.end); err != nil {
		return err
	}
	if err := syncData(l.file); err != nil {
		return err
	}
	l.end += int64(len(frames))
	l.reading.Lock()
	for _, c := range changes {
		entries := l.clients[c.Client]
		if entries == nil {
			entries = map[string]egress.URL{}
			l.clients[c.Client] = entries
		}
		entries[c.Scope.Entity()] = c.URL
	}
	l.reading.Unlock()
	close(done)
	return nil
}

func openBenchFile(b *testing.B, path string) *store.File {
	file, err := store.OpenFile(path, &store.FileOptions{CompactRatio: -1})
	if err != nil {
		b.Fatal(err)
	}
	return file
}

type applier interface {
	Apply(context.Context, webhookcfg.Change) error
}

// makeSets has writers make sets as fast as they can, and returns how long each
// took to be answered.
func makeSets(b *testing.B, s applier, writers, first, sets int) []time.Duration {
	next := atomic.Int64{}
	next.Store(int64(first))
	waits := make([][]time.Duration, writers)
	var all sync.WaitGroup
	for w := range writers {
		waits[w] = make([]time.Duration, 0, sets/writers*2)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // as each request has
			defer cancel()
			for {
				n := int(next.Add(1))
				if n > first+sets {
					return
				}
				c := benchChange(n, distinctURL(n))
				began := time.Now()
				if err := s.Apply(ctx, c); err != nil {
					b.Error(err)
					return
				}
				waits[w] = append(waits[w], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(waits...)
}

// BenchmarkFileSets compares durable sets with the minimal log, turn and turn about.
func BenchmarkFileSets(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			minimal, file := openMinimalLog(b), openBenchFile(b, filepath.Join(b.TempDir(), "file"))
			var spent [2]time.Duration
			const turn = 5000
			for done := 0; done < b.N; done += turn {
				for i, s := range []applier{minimal, file} {
					began := time.Now()
					makeSets(b, s, writers, done, min(turn, b.N-done))
					spent[i] += time.Since(began)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N)/spent[1].Seconds(), "sets/s")
			b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "of-minimal")
		})
	}
}

const million = 1_000_000

// makeMillion leaves a closed file of a million records.
func makeMillion(b *testing.B, url func(n int) egress.URL) (path string) {
	path = filepath.Join(b.TempDir(), "million")
	file := openBenchFile(b, path)
	var all sync.WaitGroup
	for w := range 1000 {
		all.Go(func() {
			for n := w; n < million; n += 1000 {
				if err := file.Apply(b.Context(), benchChange(n, url(n))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkFileOpen compares opening a million records with one bare pass over
// them on one core: checksums, a scan for the values, and an insert into a map.
func BenchmarkFileOpen(b *testing.B) {
	shared := make([]egress.URL, 1000)
	for i := range shared {
		shared[i] = distinctURL(i)
	}
	for name, url := range map[string]func(int) egress.URL{
		"distinct": distinctURL,
		"shared":   func(n int) egress.URL { return shared[rand.IntN(len(shared))] },
	} {
		b.Run(name, func(b *testing.B) {
			path := makeMillion(b, url)
			var spent [2]time.Duration
			var stays, peak uint64
			for b.Loop() {
				runtime.GC()
				began := time.Now()
				barePass(b, path)
				spent[0] += time.Since(began)
				before := liveHeap()
				highest := watchHeap()
				began = time.Now()
				file := openBenchFile(b, path)
				spent[1] += time.Since(began)
				peak = highest() - before
				stays = liveHeap() - before
				if err := file.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(spent[1].Seconds()/float64(b.N), "s/open")
			b.ReportMetric(spent[1].Seconds()/spent[0].Seconds(), "of-bare-pass")
			b.ReportMetric(float64(stays)/million, "B/record")
			b.ReportMetric(float64(peak)/float64(stays), "peak/stays")
		})
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	return heapInUse()
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watchHeap looks at the heap until the function that it returns is called, which
// returns the most that was in use.
func watchHeap() (highest func() uint64) {
	stop, found := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			most = max(most, heapInUse())
			select {
			case <-stop:
				found <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-found
	}
}

// barePass knows where in a line the values are, and makes the same map of them.
func barePass(b *testing.B, path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	type entry struct {
		url   string
		since int64
	}
	clients := map[string]map[string]entry{}
	records, sums := 0, uint32(0)
	for len(content) > 0 {
		line := content[:bytes.IndexByte(content, '\n')]
		content = content[len(line)+1:]
		sums ^= crc32.Checksum(line[:len(line)-len(`,"crc":"01234567"}`)], castagnoli)
		client, rest := valueAfter(line, `"client":"`)
		entity, rest := valueAfter(rest, `"entity":"`)
		url, rest := valueAfter(rest, `"url":"`)
		since, rest := valueAfter(rest, `"time":"`)
		if rest == nil {
			continue
		}
		entries := clients[string(client)]
		if entries == nil {
			entries = map[string]entry{}
			clients[string(client)] = entries
		}
		entries[string(entity)] = entry{string(url), int64(since[len(since)-2])}
		records++
	}
	if records != million || sums == 0 {
		b.Fatal(records, sums)
	}
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

// BenchmarkFileCompaction compares how long sets take beside a compaction of a
// million records with how long they take without.
func BenchmarkFileCompaction(b *testing.B) {
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			file := openBenchFile(b, makeMillion(b, distinctURL))
			const sets = 20_000
			var alone, beside []time.Duration
			first := million
			for b.Loop() {
				alone = append(alone, makeSets(b, file, writers, first, sets)...)
				first += sets
				var compacting atomic.Bool
				compacting.Store(true)
				go func() {
					defer compacting.Store(false)
					if err := file.Compact(b.Context()); err != nil {
						b.Error(err)
					}
				}()
				for compacting.Load() {
					beside = append(beside, makeSets(b, file, writers, first, 500)...)
					first += 500
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(quantile(alone, 0.99), "p99-alone-µs")
			b.ReportMetric(quantile(beside, 0.99), "p99-beside-µs")
			b.ReportMetric(quantile(beside, 0.99)/quantile(alone, 0.99), "p99-ratio")
			b.ReportMetric(quantile(beside, 1), "longest-beside-µs")
			b.ReportMetric(quantile(alone, 1), "longest-alone-µs")
		})
	}
}

// quantile returns a quantile in microseconds.
func quantile(waits []time.Duration, q float64) float64 {
	slices.Sort(waits)
	return float64(waits[int(q*float64(len(waits)-1))].Microseconds())
}
