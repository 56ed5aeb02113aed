package etcdstore

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestSweepEvery: there's a sweep in each interval, and a failure is logged.
func TestSweepEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		kv := &fakeKV{fails: 2}
		st, err := New(&clientv3.Client{KV: kv, Watcher: newFakeWatcher()}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		st.SweepEvery(ctx, time.Hour)
		if n := strings.Count(log.String(), "\n"); kv.reads != 3 || n != 1 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), errFake.Error()) {
			t.Errorf("%d reads in three hours; logged %s", kv.reads, log.String())
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("no panic without an interval")
		}
	}()
	st, _, _ := newFakeStore(t)
	st.SweepEvery(t.Context(), 0)
}
