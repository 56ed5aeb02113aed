// Package client is what oapi-codegen makes of the OpenAPI document: nothing in
// it is written by hand, so it shows what the users of such generators get.
package client

//go:generate go tool oapi-codegen -config config.yaml -o client.gen.go ../../../../webhookcfg/openapi.yaml
