package cache

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options configures a [Cache]. The zero value is safe, as is a nil pointer.
type Options struct {
	// MaxStale bounds the staleness of a result: it is one that the store could have
	// returned less than MaxStale before Resolve was called, or later. Zero means
	// 2 seconds; the minimum is 10 ms.
	MaxStale time.Duration

	// PollEvery is the interval at which the store is polled for changes. Zero means a
	// quarter of MaxStale, which leaves room for a slow response. It must be less than
	// MaxStale and at least 1 ms. A [Notifier] triggers polls earlier, at most ten times
	// as often. A poll times out after half of MaxStale.
	PollEvery time.Duration

	// StaleIfError keeps you sending while the store is down: if a read fails, entries up to
	// StaleIfError old are returned (RFC 5861, Section 4). A read fails too if it takes longer
	// than MaxStale, or the deadline of the caller's context passes. A canceled context always
	// gives an error. It must exceed MaxStale. For twice MaxStale after a failed read, callers
	// with an entry wait only a hundredth of MaxStale. Zero means that Resolve returns the error.
	StaleIfError time.Duration

	// MaxReads is the maximum number of concurrent reads of the store, of which those of
	// one client take at most half, rounded up. Others wait for their turn. Zero means 8.
	// Neither polls nor changes count: with a pool of more connections than MaxReads,
	// reads do not keep them waiting.
	MaxReads int

	// MaxBytes bounds the memory that entries take, by an estimate that is seldom too low.
	// Zero means 128 MiB, enough for 100,000 clients of which a few have overrides. The
	// minimum is 1 MiB. When the cache is full, the client with the most entries loses its
	// least recently used one. A client that is held whole counts as one entry.
	MaxBytes int

	// Logger receives a record when polls start to fail and when they succeed again. No
	// record contains a URL. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxStale = 2 * time.Second
	defaultMaxReads = 8
	defaultMaxBytes = 128 << 20

	minMaxStale  = 10 * time.Millisecond
	minPollEvery = time.Millisecond
	minMaxBytes  = 1 << 20
)

func (o *Options) maxStale() time.Duration  { return cmp.Or(o.MaxStale, defaultMaxStale) }
func (o *Options) pollEvery() time.Duration { return cmp.Or(o.PollEvery, o.maxStale()/4) }

func (o *Options) maxReads() int { return cmp.Or(o.MaxReads, defaultMaxReads) }
func (o *Options) maxBytes() int { return cmp.Or(o.MaxBytes, defaultMaxBytes) }

// readTimeout is the time limit of a read. With StaleIfError, an older webhook is better
// than a longer wait.
func (o *Options) readTimeout() time.Duration {
	if o.StaleIfError > 0 {
		return o.maxStale()
	}
	return readTimeout
}

func (o *Options) check() error {
	switch {
	case o.MaxStale < 0 || o.PollEvery < 0 || o.StaleIfError < 0 || o.MaxReads < 0 || o.MaxBytes < 0:
		return errors.New("cache: negative option")
	case o.maxStale() < minMaxStale:
		return fmt.Errorf("cache: MaxStale %v below the minimum of %v", o.maxStale(), minMaxStale)
	case o.pollEvery() < minPollEvery:
		return fmt.Errorf("cache: PollEvery %v below the minimum of %v", o.pollEvery(), minPollEvery)
	case o.pollEvery() >= o.maxStale():
		return fmt.Errorf("cache: PollEvery %v not less than MaxStale %v", o.pollEvery(), o.maxStale())
	case o.StaleIfError > 0 && o.StaleIfError <= o.maxStale():
		return fmt.Errorf("cache: StaleIfError %v not greater than MaxStale %v", o.StaleIfError, o.maxStale())
	case o.maxBytes() < minMaxBytes:
		return fmt.Errorf("cache: MaxBytes %d below the minimum of %d", o.maxBytes(), minMaxBytes)
	}
	return nil
}
