package cache

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options are the options of [New]. You can use nil or the zero value.
type Options struct {
	// MaxStale bounds how stale a result can be. Resolve returns what the store would have
	// returned at some moment within the last MaxStale before the call, or during the call.
	// Zero means 2 seconds. The minimum is 10 ms.
	//
	// The cache polls the store four times as often, and each query of a poll times out after
	// half of MaxStale. A [Notifier] triggers polls earlier, at most ten times as often.
	//
	// A poll of a [Feed] (PostgreSQL, SQLite, etcd) is one query for any number of clients. A poll
	// of a [Versioner] (MySQL, MariaDB) is one for each 256 clients that the cache holds, and all of
	// them together must take less than MaxStale. If a query takes 8 ms, that's enough for
	// 2 s / 8 ms * 256 = 64,000 clients, so stay well below. Beyond that, entries expire between
	// polls and are read again. You can raise MaxStale, or lower MaxBytes to hold fewer clients.
	MaxStale time.Duration

	// StaleIfError keeps you sending while the store is down: if a read fails, you get
	// entries up to StaleIfError old (RFC 5861, Section 4). It must be more than MaxStale.
	// Zero means that Resolve returns the error.
	//
	// A read also counts as failed if it takes longer than MaxStale, or if your context's
	// deadline passes. If you cancel the context, you always get an error. While polls time
	// out, and for 2*MaxStale after a read of the client failed, callers with an entry wait
	// only MaxStale/100.
	StaleIfError time.Duration

	// MaxReads is the maximum number of concurrent reads of the store. One client can take at
	// most half of them, rounded up. Further reads wait for their turn. Zero means 8. Polls
	// and changes don't count.
	//
	// The store's pool should have MaxReads connections, one for polls, and one more for changes if
	// the process also serves the handler, so that reads don't keep polls and changes waiting. With
	// the default, ten processes that only send take 90 of the 100 connections that PostgreSQL
	// allows by default. With 1, which is enough once the copy is warm, 45 processes take as many.
	MaxReads int

	// MaxBytes bounds the memory of the entries, by an estimate that's seldom too low. When
	// the cache is full, the client with the most entries loses its least recently used one.
	// A client that's held as a whole counts as one entry. A client without overrides takes
	// about 800 bytes, and each override about 350. Zero means 128 MiB, which is enough for
	// 100,000 clients if only a few have overrides. The minimum is 1 MiB.
	MaxBytes int

	// Logger gets a record when polls start to fail, when they work again, and when the store
	// turns out not to support them. Records never contain a URL. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxStale = 2 * time.Second
	defaultMaxReads = 8
	defaultMaxBytes = 128 << 20

	minMaxStale = 10 * time.Millisecond
	minMaxBytes = 1 << 20
)

func (o *Options) maxStale() time.Duration { return cmp.Or(o.MaxStale, defaultMaxStale) }
func (o *Options) maxReads() int           { return cmp.Or(o.MaxReads, defaultMaxReads) }
func (o *Options) maxBytes() int           { return cmp.Or(o.MaxBytes, defaultMaxBytes) }

// readTimeout is the time limit of a read. It's shorter with StaleIfError, because an older
// webhook is better than a longer wait.
func (o *Options) readTimeout() time.Duration {
	if o.StaleIfError > 0 {
		return o.maxStale()
	}
	return readTimeout
}

// pollInterval leaves room for a slow response.
func (o *Options) pollInterval() time.Duration { return o.maxStale() / 4 }

func (o *Options) check() error {
	switch {
	case o.MaxStale < 0 || o.StaleIfError < 0 || o.MaxReads < 0 || o.MaxBytes < 0:
		return errors.New("cache: an option is negative")
	case o.maxStale() < minMaxStale:
		return fmt.Errorf("cache: MaxStale is %v, but must be at least %v", o.maxStale(), minMaxStale)
	case o.StaleIfError > 0 && o.StaleIfError <= o.maxStale():
		return fmt.Errorf("cache: StaleIfError is %v, but must be more than MaxStale, %v", o.StaleIfError, o.maxStale())
	case o.maxBytes() < minMaxBytes:
		return fmt.Errorf("cache: MaxBytes is %d, but must be at least %d", o.maxBytes(), minMaxBytes)
	}
	return nil
}
