package webhookcfg

import (
	_ "embed"
	"fmt"
	"strings"
)

// document describes a handler without a base path and aliases.
//
//go:embed openapi.yaml
var document string

// OpenAPI returns the description of the handler's interface as an OpenAPI 3.1 document in
// YAML. Serve it as application/yaml (RFC 9512) to your clients and their tools. Every call
// returns a new copy.
//
// The document names [Options.BasePath] as the server, and has the paths of
// [Options.VariantAliases]. If you strip a prefix before you call the handler, replace the
// server "/". Reads and deliveries are included even if the handler doesn't serve them. The
// limits and the syntax of identifiers are the defaults.
func (h *Handler) OpenAPI() []byte {
	described := document
	if base := h.options.BasePath; base != "" {
		described = strings.Replace(described, "\n  - url: /\n", fmt.Sprintf("\n  - url: %q\n", base), 1)
	}
	const end = "\ncomponents:\n" // of the paths; the last ones are the variant's
	paths, components, _ := strings.Cut(described, end)
	_, variant, _ := strings.Cut(paths, "\n  "+variantPath+":\n")
	for i, alias := range h.options.VariantAliases {
		paths += describeAlias(variant, alias, i+1)
	}
	return []byte(paths + end + components)
}

// describeAlias returns the paths of the n-th alias, made of the variant's. The paths of a
// text are keys with two spaces before them, and the first operation is the set.
func describeAlias(variant, alias string, n int) string {
	root := strings.TrimSuffix(alias, "/")
	set, rest, _ := strings.Cut(variant, "    delete:\n")
	described := fmt.Sprintf("\n  %q:\n%s", alias, set)
	if alias != root {
		described += fmt.Sprintf("  %q:\n", root)
	}
	described += "    delete:\n" + rest
	return strings.NewReplacer(
		"  "+variantPath+"/{moc_id}:", fmt.Sprintf("  %q:", root+"/{moc_id}"),
		"VariantWebhook", fmt.Sprintf("Alias%dWebhook", n), // in an operationId, which must be unique
	).Replace(described)
}
