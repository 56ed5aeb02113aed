package webhookcfg

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
)

// openAPI describes a handler without a base path and without aliases.
//
//go:embed openapi.yaml
var openAPI string

// document is openAPI in parts. The lines between them depend on the options.
var document = func() (d struct{ intro, paths, set, all, one, responses, codes, texts, rest string }) {
	rest := openAPI
	until := func(line string) string {
		part, after, found := strings.Cut(rest, "\n"+line)
		if !found {
			panic(fmt.Sprintf("webhookcfg: openapi.yaml has no line %q, or has it too early", line))
		}
		rest = after
		return part + "\n"
	}
	d.intro = until(serverLine("/"))
	d.paths = until(pathLine(variantPath))
	d.set = until(deleteLine)
	d.all = until(pathLine(variantPath + "/{" + mocID + "}"))
	d.one = until(componentsLine)
	d.responses = until(exampleLines(allRefused))
	d.codes = until(enumLine([]string{allRefused.Code}))
	d.texts = until(enumLine([]string{allRefused.Description}))
	d.rest = rest
	for _, part := range []string{d.set, d.all, d.one} {
		if strings.Count(part, "operationId: ") != strings.Count(part, variantName) {
			panic("webhookcfg: openapi.yaml has an operationId of the variant without " + variantName + ", so an alias would have the same")
		}
	}
	return d
}()

const (
	deleteLine     = "    delete:\n"
	componentsLine = "components:\n"
	variantName    = "VariantWebhook" // in each operationId of the variant
)

func serverLine(base string) string { return fmt.Sprintf("  - url: %q\n", base) }
func pathLine(path string) string   { return fmt.Sprintf("  %q:\n", path) }

// exampleLines returns an example of a response with 403.
func exampleLines(r Refusal) string {
	return fmt.Sprintf("            %[1]q:\n              value: {error: %[1]q, error_description: %[2]q}\n", r.Code, r.Description)
}

// enumLine returns the values of a field. In quotes, a code such as "null" is a text in YAML.
func enumLine(values []string) string {
	return `          enum: ["` + strings.Join(values, `", "`) + "\"]\n"
}

// OpenAPI returns an OpenAPI 3.1 document in YAML that describes the handler's interface, for
// your clients and their tools. Serve it as application/yaml (RFC 9512). It has the base path,
// the aliases and the refusals of your options, and otherwise the defaults: reads and deliveries
// even if you don't serve them, and the usual limits and identifiers. If you strip a prefix
// before you call the handler, replace the server "/". Every call returns a new copy.
func (h *Handler) OpenAPI() []byte {
	variants := []string{describeVariant(variantPath, "Variant")}
	for i, alias := range h.options.VariantAliases {
		variants = append(variants, describeVariant(alias, fmt.Sprintf("Alias%d", i+1)))
	}
	var examples, codes, texts []string
	for _, r := range append([]Refusal{allRefused}, h.options.Refusals...) {
		examples = append(examples, exampleLines(r))
		codes, texts = append(codes, r.Code), append(texts, r.Description)
	}
	return []byte(document.intro + serverLine(cmp.Or(h.options.BasePath, "/")) +
		document.paths + strings.Join(variants, "") +
		componentsLine + document.responses + strings.Join(examples, "") +
		document.codes + enumLine(codes) + document.texts + enumLine(texts) + document.rest)
}

// describeVariant returns the paths of the variant, or of an alias. The name makes the
// operationIds unique.
func describeVariant(path, name string) string {
	root := strings.TrimSuffix(path, "/")
	text := pathLine(path) + document.set
	if path != root { // only a set has the slash
		text += pathLine(root)
	}
	text += deleteLine + document.all + pathLine(root+"/{"+mocID+"}") + document.one
	return strings.ReplaceAll(text, variantName, name+"Webhook")
}
