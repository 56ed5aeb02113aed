package main

import "context"

// counts are the numbers of notifications in the queue. They stop at [mostCounted].
type counts struct {
	Waiting  int64 // for a worker, their turn or the next attempt
	UnderWay int64
	GivenUp  int64 // you can replay these
}

// mostCounted keeps counting cheap: each state is counted up to this number.
const mostCounted = 10_000

// countJobs doesn't count completed jobs, since nobody needs their number.
const countJobs = `SELECT
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'available' LIMIT $1) AS jobs),
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'scheduled' LIMIT $1) AS jobs),
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'retryable' LIMIT $1) AS jobs),
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'running' LIMIT $1) AS jobs),
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'cancelled' LIMIT $1) AS jobs),
	(SELECT count(*) FROM (SELECT 1 FROM river_job WHERE state = 'discarded' LIMIT $1) AS jobs)`

// counts returns the numbers. With a million jobs it takes no longer than with ten thousand.
func (d *database) counts(ctx context.Context) (counts, error) {
	var available, scheduled, retryable, running, cancelled, discarded int64
	err := d.QueryRowContext(ctx, countJobs, mostCounted).
		Scan(&available, &scheduled, &retryable, &running, &cancelled, &discarded)
	return counts{
		Waiting:  min(available+scheduled+retryable, mostCounted),
		UnderWay: running,
		GivenUp:  min(cancelled+discarded, mostCounted),
	}, err
}
