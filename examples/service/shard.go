package main

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/riverqueue/river"
)

// shards is the number of queues that the clients share, each with workers of its own. A
// client's backlog passes through the workers of one shard, and the clients of the others
// don't notice. If you change the number, have the queues that are left over drained first.
const shards = 8

// queueOf returns the queue for a client's next notification: the client's shard, or beyond
// a backlog the overflow of that shard, whose workers nobody else waits for.
func queueOf(client string, waiting, backlog int) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(client)) // never fails
	shard := sum.Sum32() % shards
	if waiting < backlog {
		return shardName(shard)
	}
	return overflowName(shard)
}

// Replay turns the name of a shard into that of its overflow.
func shardName(n uint32) string    { return fmt.Sprint("shard_", n) }
func overflowName(n uint32) string { return fmt.Sprint("overflow_", n) }

// queues returns all queues, with so many workers each.
func queues(workers int) map[string]river.QueueConfig {
	all := make(map[string]river.QueueConfig)
	for n := range uint32(shards) {
		all[shardName(n)] = river.QueueConfig{MaxWorkers: workers}
		// A worker that finds the receiver busy defers the notification, which writes to the
		// database. An overflow has thousands of them: at the pace of a shard it would keep the
		// database busy for everybody when the process starts. At this pace its receivers
		// still get what their slots allow.
		all[overflowName(n)] = river.QueueConfig{MaxWorkers: max(workers/4, 1), FetchCooldown: 100 * time.Millisecond}
	}
	// The only queue of the first versions of this program.
	all[river.QueueDefault] = river.QueueConfig{MaxWorkers: workers}
	return all
}
