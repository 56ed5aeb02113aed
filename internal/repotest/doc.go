// Package repotest tests the repository itself: its top level, its modules, its import
// rule, its API, its documentation, and how a host consumes it. It has tests only.
package repotest
