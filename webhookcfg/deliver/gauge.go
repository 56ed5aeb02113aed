package deliver

import "time"

const (
	// assumedDuration is how long we expect an attempt to take at a receiver that hasn't
	// responded yet.
	assumedDuration = 20 * time.Millisecond

	// maxResponses is how many responses the average duration follows. With fewer, single
	// responses would make the turns jump and leave gaps between them.
	maxResponses = 32

	// minTurn and maxTurn bound the time from one turn to the next. With maxTurn, the
	// messages for one receiver come back 20 times a second in total, regardless of their
	// number, however long the receiver hangs. Once it responds, they go out at least that
	// fast.
	minTurn = 100 * time.Microsecond
	maxTurn = 50 * time.Millisecond
)

// gauge counts and times the attempts under way, and gives turns to deferred ones.
type gauge struct {
	underway  int
	average   time.Duration // of an attempt
	responses int           // that it follows
	quiet     time.Time     // since when there was no response, though attempts are under way
	turn      time.Time     // the last one that was given
	pace      time.Duration // at which turns are given
}

func newGauge() gauge { return gauge{average: assumedDuration} }

func (g *gauge) start(now time.Time) {
	if g.underway == 0 {
		g.quiet = now
	}
	g.underway++
}

// interval returns the time from one free slot to the next. The average alone isn't enough,
// because it doesn't change while the receiver hangs.
func (g *gauge) interval(now time.Time, limit int) time.Duration {
	return max(g.average, now.Sub(g.quiet)) / time.Duration(limit)
}

// newPace returns the time from one turn to the next. Turns come a little faster than slots
// become free, since a slot that nobody comes for is lost.
func (g *gauge) newPace(now time.Time, limit int) time.Duration {
	return min(max(g.interval(now, limit)*15/16, minTurn), maxTurn)
}

// nextTurn gives out the next turn, at resume or later, and returns the time until then.
func (g *gauge) nextTurn(now, resume time.Time, limit int, maxWait time.Duration) time.Duration {
	g.pace = g.newPace(now, limit)
	if g.turn.Before(resume) || g.turn.Sub(resume) > maxWait-g.pace {
		g.turn = resume
	}
	g.turn = g.turn.Add(g.pace)
	return g.turn.Sub(now)
}

// respond records a response. If slots become free much faster than before, it moves the last
// turn to where the new pace would have put it, so that newly deferred attempts fill the
// gaps.
func (g *gauge) respond(start, now time.Time, limit int) {
	g.responses = min(g.responses+1, maxResponses)
	g.average += (now.Sub(start) - g.average) / time.Duration(g.responses+1)
	g.quiet = now
	pace, ahead := g.newPace(now, limit), g.turn.Sub(now)
	if ratio := float64(pace) / float64(g.pace); ahead > 0 && ratio < 0.8 {
		g.turn = now.Add(time.Duration(float64(ahead) * ratio))
		g.pace = pace
	}
}
