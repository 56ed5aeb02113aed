package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestSweepEvery: each interval has a sweep, and one that fails is logged.
func TestSweepEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		kv := &fakeKV{}
		st, err := New(&clientv3.Client{KV: kv, Watcher: newFakeWatcher()}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); st.SweepEvery(ctx, time.Hour) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if kv.reads != 1 {
			t.Errorf("%d reads in the first hour", kv.reads)
		}
		kv.err = errors.New("broken")
		time.Sleep(time.Hour)
		synctest.Wait()
		kv.err = nil
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(log.String(), "broken"); kv.reads != 3 || n != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%d reads in three hours; logged %s", kv.reads, log.String())
		}
		cancel()
		<-ended
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("at the end, logged %s", log.String())
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
