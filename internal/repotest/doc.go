// Package repotest tests the repository itself: its import rule, its API, its links and its
// limits, and how a host consumes it. It has tests only.
package repotest
