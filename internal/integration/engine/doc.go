// Package engine gives your test a server: a database, or another one such as an HTTP proxy
// ([Daemon]).
//
// It takes the first one of these that works:
//
//   - the server whose DSN is in the environment
//   - a server that it starts from installed programs
//   - a server that it starts from Debian packages. It downloads and unpacks them in a cache
//     directory, and needs no privileges for that.
//
// If none of these works, the test fails. Only -short skips it. A [Pair] is always started.
//
// A started server only listens on loopback, runs as an unprivileged user with a random
// password, and keeps its data in a temporary directory. It ends with the tests, even if they
// are killed. You can only start servers on Linux. Elsewhere you need the DSN.
package engine
