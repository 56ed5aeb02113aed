// Package queue sends what waits in the tables of package outbox.
//
// Each process has a lease, and lines: those of clients that it has claimed. A poll every few
// milliseconds finds what was enqueued, by number, and lines that are due or were marked. What to do for
// a client next, package line decides; a drain asks it, reads what it wants to know, starts attempts and
// hands over what became of them. One writer writes that for all lines of a process, in transactions
// that its lease guards.
//
//	queue.go      what others call
//	process.go    a process, from when it joins until it leaves
//	lease.go      how long its lines are its own
//	takeover.go   which of the others have ended, and which clients belong to whom
//	poll.go       what's new, and what to claim
//	drain.go      a client's line in a process
//	load.go       what clients with a backlog may have under way
//	writer.go     what is written, together
//	clock.go      waits, and the database's times
//	engine.go     what differs between databases; one file for each table beside it
package queue
