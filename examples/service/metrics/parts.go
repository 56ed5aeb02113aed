package metrics

import (
	"context"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"github.com/prometheus/client_golang/prometheus"
)

// Watch adds the figures of a part of your service, such as its store. You get its health if
// it has a method Healthy, and more for a [store.File], a [cache.Cache] and an
// [outbox.Outbox]. A part that wraps one of these and passes nothing through has no figures, so no
// alert fires for it: watch what it wraps. The name becomes the value of the label "part". Watch returns the registry's
// error, for example if the name is taken.
//
// If an outbox can't be read, a scrape has an error, which promhttp logs. Set its ErrorHandling to
// ContinueOnError, or the other metrics are missing then, too.
//
// Watch itself logs nothing. Let examples/internal/probes check the part, too, so that the log has the
// cause when an alert fires.
func (m *Metrics) Watch(name string, part any) error {
	registry := prometheus.WrapRegistererWith(prometheus.Labels{"part": name}, m.registry)
	var figures []prometheus.Collector
	if h, ok := part.(healthy); ok {
		figures = append(figures, gauge("webhook_healthy", "Whether a part works: 1 or 0.", func() float64 { return health(h) }))
	}
	switch part := part.(type) {
	case *store.File:
		figures = append(figures, ofFile(part)...)
	case *cache.Cache:
		figures = append(figures, ofCache(part)...)
	case queue:
		figures = append(figures, queueCollector{part})
	}
	for _, c := range figures {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// healthy is a part that knows its health. Asking it is cheap.
type healthy interface {
	Healthy(ctx context.Context) error
}

// health asks a part for its health, and waits as long as a scrape can wait.
func health(part healthy) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	if part.Healthy(ctx) != nil {
		return 0
	}
	return 1
}

func ofFile(f *store.File) []prometheus.Collector {
	of := func(value func(s store.FileStats) float64) func() float64 {
		return func() float64 { return value(f.Stats()) }
	}
	return []prometheus.Collector{
		gauge("webhook_file_bytes", "Length of the changes in the file.",
			of(func(s store.FileStats) float64 { return float64(s.Bytes) })),
		gauge("webhook_file_live_bytes", "Estimated length of the changes after a compaction.",
			of(func(s store.FileStats) float64 { return float64(s.LiveBytes) })),
		counter("webhook_file_changes_total", "Changes that were made.",
			of(func(s store.FileStats) float64 { return float64(s.Changes) })),
		counter("webhook_file_compactions_total", "Compactions of the file.",
			of(func(s store.FileStats) float64 { return float64(s.Compactions) })),
		gauge("webhook_file_last_batch_changes", "Changes that were written together last.",
			of(func(s store.FileStats) float64 { return float64(s.LastBatch) })),
		gauge("webhook_file_last_write_seconds", "How long the last write and its sync took.",
			of(func(s store.FileStats) float64 { return s.LastWrite.Seconds() })),
	}
}

func ofCache(c *cache.Cache) []prometheus.Collector {
	of := func(value func(s cache.Stats) float64) func() float64 {
		return func() float64 { return value(c.Stats()) }
	}
	return []prometheus.Collector{
		gauge("webhook_cache_entries", "Entries of the copy.",
			of(func(s cache.Stats) float64 { return float64(s.Entries) })),
		gauge("webhook_cache_bytes", "Approximate memory of the entries.",
			of(func(s cache.Stats) float64 { return float64(s.Bytes) })),
		counter("webhook_cache_hits_total", "Webhooks that the copy had.",
			of(func(s cache.Stats) float64 { return float64(s.Hits) })),
		counter("webhook_cache_misses_total", "Webhooks that the copy didn't have.",
			of(func(s cache.Stats) float64 { return float64(s.Misses) })),
		counter("webhook_cache_reads_total", "Reads of the store.",
			of(func(s cache.Stats) float64 { return float64(s.Reads) })),
		counter("webhook_cache_failed_reads_total", "Reads that returned an error.",
			of(func(s cache.Stats) float64 { return float64(s.FailedReads) })),
		counter("webhook_cache_polls_total", "Polls of the store for changes.",
			of(func(s cache.Stats) float64 { return float64(s.Polls) })),
		counter("webhook_cache_failed_polls_total", "Polls that returned an error.",
			of(func(s cache.Stats) float64 { return float64(s.FailedPolls) })),
		gauge("webhook_cache_age_seconds", "Time since the last successful poll started; negative before the first.",
			of(func(s cache.Stats) float64 { return s.Age.Seconds() })),
		gauge("webhook_cache_max_stale_seconds", "How old the copy may be.",
			of(func(s cache.Stats) float64 { return s.MaxStale.Seconds() })),
	}
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}
