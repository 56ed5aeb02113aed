// Package engine comes by the database servers that tests need.
//
// A test gets, in this order: the server whose DSN is in the environment; one that
// is started for it from programs that are installed; one that is started from
// Debian packages, which are fetched and unpacked in a cache folder without any
// privilege. Where none of it works the test fails. It is skipped only under -short.
//
// What is started listens on loopback alone, runs as a user without privileges, has
// a password of chance, keeps its data in a temporary folder, and ends with the
// tests, even where they are killed. This is for Linux; elsewhere the DSN is needed.
package engine
