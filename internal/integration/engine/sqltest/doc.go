// Package sqltest tests package sqlstore on a real database server: conformance,
// linearizability with several replicas, the optional interfaces, and the outcome of changes
// when the server, the network or the schema fails.
//
// Each test also has to catch a store that is broken on purpose, so you can trust that it
// would find the real thing.
package sqltest
