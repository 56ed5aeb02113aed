// Package contract tests the handler, its OpenAPI document and third-party clients against
// each other.
//
//   - A third-party validator checks the requests and responses of a large table against the
//     document.
//   - A generated client calls every operation.
//   - The reference library of Standard Webhooks in Go verifies the requests of package
//     deliver, and responds to its challenge. The libraries in JavaScript, Python and Java do
//     the same.
package contract
