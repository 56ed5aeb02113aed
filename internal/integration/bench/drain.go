package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	drainClients = 20
	drainWorkers = drainClients * receiverSlots // as many as the slots of all clients
)

// drained says how a backlog was delivered.
type drained struct {
	rate         float64 // notifications a second
	process, all float64 // CPU time of each in milliseconds: this process's, and with the database's
}

// drain compares how fast a backlog for quick receivers is delivered, and the CPU time of
// that, with a bare worker of River in the same database.
func (q queueTrial) drain() (rows [][]string) {
	each := q.scaled(1000)
	var rates, processes, alls [2][]float64 // of the outbox, and of River
	var updates string
	for range q.rounds {
		var trials [2]drained
		trials[0], updates = q.drainOutbox(each)
		trials[1] = q.drainRiver(drainClients * each)
		for i, d := range trials {
			rates[i], processes[i], alls[i] = append(rates[i], d.rate), append(processes[i], d.process), append(alls[i], d.all)
		}
	}
	row := func(what string, format func(float64) string, values [2][]float64, budget string) []string {
		return []string{what, format(median(values[0])), format(median(values[1])), spread(quotients(values[0], values[1])), budget}
	}
	rate := func(perSecond float64) string { return grouped(int(perSecond)) }
	used := func(cpu float64) string { return precise(cpu) + " ms" }
	return [][]string{
		row("notifications a second", rate, rates, "≥ 0.9"),
		row("CPU time of a notification, with the database's", used, alls, "≤ 1"),
		row("CPU time of a notification, of this process", used, processes, "–"),
		{"versions of a row after its INSERT", updates, "–", "–", "1"},
	}
}

func (q queueTrial) drainOutbox(each int) (d drained, updates string) {
	receivers, queue, clients := newReceivers(q.t), newQueue(q.t, q.d), names("client", drainClients)
	for _, client := range clients { // with a name each, because the idle connections to one are bounded
		queue.set(client, webhookcfg.All(), receivers.named(client)+"/quick")
	}
	queue.fill(each, clients...)
	d = q.measureDrain(receivers, each, clients, func() (end func()) {
		stop := queue.run()
		return func() {
			await(q.t, "the end of all notifications", func() bool { return queue.ended.Load() >= int64(drainClients*each) })
			stop()
		}
	})
	return d, queue.updates()
}

// job is a notification in River's table.
type job struct {
	Client string          `json:"client"`
	N      int             `json:"n"`
	Body   json.RawMessage `json:"body"`
}

// Kind implements [river.JobArgs].
func (job) Kind() string { return "notification" }

func (q queueTrial) drainRiver(n int) drained {
	ctx, cancel := context.WithTimeout(q.t.Context(), 2*time.Minute)
	pool := q.riverPool(ctx)
	defer pool.Close()
	defer cancel() // first, because the pool waits for whoever uses it
	receivers, clients, posts := newReceivers(q.t), names("client", drainClients), make(map[string]func(int) error)
	transport := &http.Transport{MaxIdleConnsPerHost: drainWorkers, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, receivers.Listener.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	for _, client := range clients {
		var err error
		if posts[client], err = signedPosts(&http.Client{Transport: transport}, receivers.named(client)+"/quick"); err != nil {
			q.t.Fatal(err)
		}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[job]) error { return posts[j.Args.Client](j.Args.N) }))
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler), // the default writes into the report
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: drainWorkers}},
		Schema:            riverSchema,
		Workers:           workers,
	})
	if err != nil {
		q.t.Fatal(err)
	}
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = job{clients[i%drainClients], i, notification}
	}
	if _, err := client.InsertManyFast(ctx, jobs); err != nil {
		q.t.Fatal(err)
	}
	sender, _, _ := strings.Cut(messageID(0), "_")
	return q.measureDrain(receivers, n, []string{sender}, func() (end func()) {
		if err := client.Start(ctx); err != nil {
			q.t.Fatal(err)
		}
		return func() {
			if err := client.Stop(ctx); err != nil {
				q.t.Fatal(err)
			}
		}
	})
}

const riverSchema = "river"

// riverPool returns connections to new tables of River.
func (q queueTrial) riverPool(ctx context.Context) *pgxpool.Pool {
	q.t.Helper()
	if _, err := q.d.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+riverSchema+" CASCADE; CREATE SCHEMA "+riverSchema); err != nil {
		q.t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(q.d.dsn)
	if err != nil {
		q.t.Fatal(err)
	}
	cfg.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		q.t.Fatal(err)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: riverSchema})
	if err != nil {
		q.t.Fatal(err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		q.t.Fatal(err)
	}
	return pool
}

// measureDrain starts to deliver what waits, n notifications from each sender. End returns
// once all outcomes are written.
func (q queueTrial) measureDrain(receivers *receivers, n int, senders []string, start func() (end func())) drained {
	q.t.Helper()
	all, process := q.d.cpu(), cpuTime()
	end := start()
	requests := receivers.await(q.t, n, senders...)
	end()
	process, all = cpuTime()-process, q.d.cpu()-all
	first, last := span(requests)
	total := float64(n * len(senders))
	return drained{total / last.Sub(first).Seconds(), milliseconds(process) / total, milliseconds(all) / total}
}
