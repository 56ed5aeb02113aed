// Package integration holds the tests that need what no user of the module
// should inherit: checkers, drivers and servers of other people.
package integration
