// Package integration holds the tests that need third-party checkers, drivers and servers.
// It's a module of its own, so users of the library don't get these dependencies.
package integration
