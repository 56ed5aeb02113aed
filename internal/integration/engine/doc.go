// Package engine provides the servers that tests need: databases, and others such as HTTP
// proxies, each a [Daemon].
//
// A test gets, in this order: the server whose DSN is in the environment; a server
// started from installed programs; a server started from Debian packages, which are
// downloaded and unpacked in a cache directory without any privilege. If none of these
// works, the test fails. It is skipped only under -short. A pair of servers is always
// started.
//
// A started server listens on loopback only, runs as an unprivileged user with a random
// password, keeps its data in a temporary directory, and ends with the tests, even if
// they are killed. Starting servers needs Linux; elsewhere the DSN is required.
package engine
