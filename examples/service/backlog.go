package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// backlogClients is the number of clients that a backlog is for: enough that no worker
// waits for the limits of one.
const backlogClients = 64

// backlog enqueues a number of notifications for a receiver on loopback that accepts all,
// delivers them, and prints how long each took. Use a database of its own, and -dev.
func (s *service) backlog(ctx context.Context, operands []string, stdout io.Writer) (err error) {
	n := 0
	if len(operands) == 1 {
		n, err = strconv.Atoi(operands[0])
	}
	if n < 1 || err != nil {
		return errors.New("backlog: want the number of notifications")
	}
	var accepted atomic.Int64
	done := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
		if accepted.Add(1) == int64(n) {
			close(done)
		}
	}))
	defer receiver.Close()
	for i := range backlogClients {
		set := webhookcfg.SetChange(backlogClient(i), webhookcfg.All(), egress.NewURL(receiver.URL))
		if err := s.engine.store.Apply(ctx, set); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := s.fill(ctx, n); err != nil {
		return err
	}
	printRate(stdout, "enqueued", n, time.Since(start))

	start = time.Now()
	if err := s.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.queue.Stop(context.WithoutCancel(ctx))) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	}
	elapsed := time.Since(start)
	printRate(stdout, "delivered", n, elapsed)
	return nil
}

func printRate(out io.Writer, what string, n int, elapsed time.Duration) {
	fmt.Fprintf(out, "%s %d in %v: %.0f/s\n", what, n, elapsed.Round(time.Millisecond), float64(n)/elapsed.Seconds())
}

func backlogClient(i int) string { return fmt.Sprint("backlog-", i) }

// fill enqueues n notifications.
func (s *service) fill(ctx context.Context, n int) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		var jobs []river.InsertManyParams
		for i := from; i < min(from+batch, n); i++ {
			m := module{client: backlogClient(i % backlogClients), id: fmt.Sprint("e", i)}
			jobs = append(jobs, river.InsertManyParams{Args: m.changed(1)})
		}
		if _, err := s.queue.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}
