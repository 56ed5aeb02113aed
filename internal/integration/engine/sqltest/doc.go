// Package sqltest tests package sqlstore on a real database server: conformance,
// linearizability through several replicas, the optional interfaces, and the outcome of
// changes when the server, the network or the schema fails.
//
// Each harness also runs against an implementation broken on purpose, which it has to
// catch.
package sqltest
