// Package repotest tests the repository itself: its layout, its import rule, its README,
// its documentation, and how a host consumes it. It has tests only.
package repotest
