// Package contract checks the handler, its OpenAPI document and third-party clients
// against each other. It has tests only.
//
//   - Two third-party validators check the requests and responses of a broad table
//     against the document. Altered documents and altered handlers must fail.
//   - Requests that the schemas of the document forbid are generated; the handler must
//     refuse each with the error that the interface specifies.
//   - A generated client calls every operation.
//   - With CONTRACT_NPM=1 (make contract), linters, a validating proxy and clients in
//     other languages run too, against the example server, and package mounttest checks
//     proxies in JavaScript.
package contract
