// Package contract checks the handler, its OpenAPI document and third-party clients
// against each other. It has tests only.
//
//   - Two third-party validators check the requests and responses of a broad table
//     against the document. Altered documents and altered handlers must fail.
//   - Requests that the schemas of the document forbid are generated; the handler must
//     refuse each with the error that the interface specifies.
//   - A generated client calls every operation.
//   - The reference library of Standard Webhooks in Go verifies the requests of package
//     deliver, and responds to its challenge.
//   - Linters, a validating proxy and clients in other languages run against the example
//     server, package mounttest checks proxies in JavaScript, and the reference libraries
//     in JavaScript, Python and Java do what the one in Go does.
package contract
