package main

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/riverqueue/river"
)

// shards is how many queues the clients share, each with its own workers. A client's backlog
// goes through the workers of one shard, so the clients of the others don't notice. Before
// you reduce the number, drain the queues that will be left over.
const shards = 8

// overflowHold is how long a worker of an overflow keeps a notification for a busy receiver
// before it defers it. A deferral writes to the database. An overflow has thousands of
// notifications, and without this time it would keep the database busy for everybody when the
// process starts. Its receivers still get as much as their slots allow. Keep it below the
// second that recall adds.
const overflowHold = 500 * time.Millisecond

// queueOf returns the queue for a client's next notification. It's the client's shard. If too
// many of the client's notifications wait, it's that shard's overflow, so nobody else waits
// for them.
func queueOf(client string, waiting, backlog int) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(client)) // never fails
	shard := sum.Sum32() % shards
	if waiting < backlog {
		return shardName(shard)
	}
	return overflowName(shard)
}

// If you change these names, change replay too: it turns the name of a shard into its
// overflow's.
func shardName(n uint32) string    { return fmt.Sprint("shard_", n) }
func overflowName(n uint32) string { return fmt.Sprint("overflow_", n) }

func isOverflow(queue string) bool { return strings.HasPrefix(queue, "overflow_") }

// queues returns all queues, each with this many workers.
func queues(workers int) map[string]river.QueueConfig {
	all := make(map[string]river.QueueConfig)
	for n := range uint32(shards) {
		all[shardName(n)] = river.QueueConfig{MaxWorkers: workers}
		all[overflowName(n)] = river.QueueConfig{MaxWorkers: workers}
	}
	// The first versions of this program only had this queue.
	all[river.QueueDefault] = river.QueueConfig{MaxWorkers: workers}
	return all
}
