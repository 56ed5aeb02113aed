// Package integration holds the tests that need third-party checkers, drivers and
// servers. It is a module of its own, so that no user of the library inherits them.
package integration
