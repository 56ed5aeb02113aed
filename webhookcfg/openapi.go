package webhookcfg

import (
	_ "embed"
)

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the description of the interface as an OpenAPI 3.1 document in
// YAML, for a host to serve (as application/yaml, RFC 9512) and for tools that
// generate clients or validate traffic. Every call returns a new copy.
//
// It describes a handler with the zero [Options], the reads and [Options.Deliveries]: the
// paths start at the root of the one server it names, "/", and the limits are the
// defaults. A host with a BasePath replaces the server; [Options.VariantAliases] and a
// host's own syntax of identifiers are not included.
func OpenAPI() []byte { return []byte(openAPI) }
