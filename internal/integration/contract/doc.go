// Package contract holds the handler, its OpenAPI document and the clients of
// others to each other. It has tests only.
//
//   - A judge reads the document with a library that is not ours, and judges every
//     request and every answer of a broad table, driven over loopback. Documents
//     altered so that the handler violates them must fail.
//   - What the document forbids is derived from its schemas and sent: the handler
//     must refuse it, with the answer of the interface's table of errors.
//   - The client that a generator makes of the document drives every operation.
//   - With CONTRACT_NPM=1 (make contract), the linters, the validating proxy and
//     the clients of other languages run too, against the example server.
package contract
