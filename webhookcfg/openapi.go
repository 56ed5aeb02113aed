package webhookcfg

import (
	_ "embed"
	"fmt"
	"strings"
)

// document describes a handler without a base path and without aliases.
//
//go:embed openapi.yaml
var document string

// OpenAPI returns an OpenAPI 3.1 document in YAML that describes the handler's interface. You
// can serve it to your clients and their tools, as application/yaml (RFC 9512). Every call
// returns a new copy.
//
// The document has [Options.BasePath] as the server, and the paths of
// [Options.VariantAliases]. If you strip a prefix before you call the handler, replace the
// server "/".
//
// It includes reads and deliveries even if your handler doesn't serve them. Its limits and
// its syntax of identifiers are the defaults.
func (h *Handler) OpenAPI() []byte {
	described := document
	if base := h.options.BasePath; base != "" {
		described = strings.Replace(described, "\n  - url: /\n", fmt.Sprintf("\n  - url: %q\n", base), 1)
	}
	const end = "\ncomponents:\n" // of the paths, and the variant's paths come last
	paths, components, _ := strings.Cut(described, end)
	_, variant, _ := strings.Cut(paths, "\n  "+variantPath+":\n")
	for i, alias := range h.options.VariantAliases {
		paths += describeAlias(variant, alias, i+1)
	}
	return []byte(paths + end + components)
}

// describeAlias returns the paths of the n-th alias, which it makes from the paths of the
// variant. It relies on the layout of the document: a path is a key after two spaces, and its
// first operation is the set.
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
		"VariantWebhook", fmt.Sprintf("Alias%dWebhook", n), // part of operationIds, which must be unique
	).Replace(described)
}
