// Package sqltest tests package sqlstore on a real database server: its laws, that
// it is linearizable through several replicas, its companions, and what becomes of
// changes when the server, the network or the schema fails.
//
// Each harness is also set on something that is broken, which it has to catch.
package sqltest
