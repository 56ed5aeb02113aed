package webhookcfg_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// outline is the part of the document that the tests compare with the code. The
// document has one layout, two spaces a level and one key a line, so that no YAML
// parser is needed.
type outline struct {
	operations map[string]string         // "METHOD /path" to operationId
	statuses   map[string]int            // component of a response to the status it is for
	errors     map[string]int            // error code to status
	responses  map[string]map[int]string // operationId to status to component of the response
}

// readOutline reads the document once from top to bottom. The status of a
// response is where it is used, and responses are used before they are defined.
func readOutline(t *testing.T, document string) outline {
	t.Helper()
	o := outline{map[string]string{}, map[string]int{}, map[string]int{}, map[string]map[int]string{}}
	var keys [8]string // the keys above the current line, by level
	for line := range strings.Lines(document) {
		text := strings.TrimLeft(line, " ")
		key, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ":")
		level := (len(line) - len(text)) / 2
		if text == "\n" || level >= len(keys) {
			continue // in a text of several lines
		}
		keys[level] = strings.Trim(key, `"`)
		value = strings.Trim(value, ` "`)
		switch {
		case keys[0] == "paths" && level == 3 && key == "operationId":
			o.operations[strings.ToUpper(keys[2])+" "+keys[1]] = value
			o.responses[value] = map[int]string{}
		case keys[0] == "paths" && level == 5 && key == "$ref" && keys[3] == "responses":
			o.use(t, keys, value)
		case keys[0] == "components" && keys[1] == "responses" && level == 7:
			if shown := errorExample.FindStringSubmatch(value); shown != nil {
				o.errors[shown[1]] = o.statuses[keys[2]]
			}
		}
	}
	return o
}

var errorExample = regexp.MustCompile(`^\{error: "?(\w+)"?, error_description: .+\}$`)

// use records the component of a status of an operation.
func (o outline) use(t *testing.T, keys [8]string, ref string) {
	t.Helper()
	status, err := strconv.Atoi(keys[4])
	if err != nil {
		t.Fatalf("status %q", keys[4])
	}
	name := strings.TrimPrefix(ref, "#/components/responses/")
	if other, used := o.statuses[name]; used && other != status {
		t.Errorf("the response %s is used for %d and for %d", name, other, status)
	}
	o.statuses[name] = status
	o.responses[o.operations[strings.ToUpper(keys[2])+" "+keys[1]]][status] = name
}

// TestOpenAPIErrors: the document has the table of errors.
func TestOpenAPIErrors(t *testing.T) {
	o := readOutline(t, openAPI(t, options()))
	if diff := cmp.Diff(webhookcfg.ErrorTable(), o.errors); diff != "" {
		t.Errorf("-table +document:\n%s", diff)
	}
}

// openAPI returns the document of a handler.
func openAPI(t *testing.T, o *webhookcfg.Options) string {
	t.Helper()
	return string(newHandler(t, newRecorder(), o).OpenAPI())
}

// TestOpenAPIRoutes: the document has the routes below the base path, including the routes of
// aliases.
func TestOpenAPIRoutes(t *testing.T) {
	tests := []struct {
		name, basePath string
		aliases        []string
		server         string // the line of the document
	}{
		{name: "default", server: "  - url: \"/\"\n"},
		{name: "base path", basePath: "/v2/hooks:a/", server: "  - url: \"/v2/hooks:a\"\n"},
		{name: "aliases", aliases: []string{"/short/webhook/", "/other"}, server: "  - url: \"/\"\n"},
		{name: "base path and alias", basePath: "/hooks", aliases: []string{"/hooks"}, server: "  - url: \"/hooks\"\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			opts := options()
			opts.BasePath, opts.VariantAliases = test.basePath, test.aliases
			h := newHandler(t, newRecorder(), opts)
			document := string(h.OpenAPI())
			if !strings.Contains(document, "\nservers:\n"+test.server) {
				t.Errorf("the document has no server %q", test.server)
			}
			checkRoutes(t, readOutline(t, document), h.Routes(), strings.TrimSuffix(test.basePath, "/"))
		})
	}
}

// checkRoutes checks that the document has the routes without the base path, and no others.
func checkRoutes(t *testing.T, o outline, routes []webhookcfg.Route, basePath string) {
	t.Helper()
	documented := maps.Clone(o.operations)
	for _, route := range routes {
		// The description names the trailing slash of an unset, a second path of it.
		path := strings.TrimPrefix(route.Path, basePath)
		if route.Operation == "unset" {
			path = strings.TrimSuffix(path, "/{$}")
		}
		name := route.Method + " " + strings.TrimSuffix(path, "{$}")
		id, ok := o.operations[name]
		if !ok || !strings.HasPrefix(id, route.Operation) {
			t.Errorf("%s of Routes is %q in the document, want an operationId that starts with %s", name, id, route.Operation)
		}
		delete(documented, name)
	}
	if len(documented) > 0 {
		t.Errorf("Routes does not have %v", documented)
	}
	ids := slices.Sorted(maps.Values(o.operations))
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) || len(ids) == 0 {
		t.Errorf("operationIds are not unique: %q", ids)
	}
}

// TestOpenAPIResponses: an operation documents each status that it can have, and no
// other.
func TestOpenAPIResponses(t *testing.T) {
	o := readOutline(t, openAPI(t, options()))
	for name, id := range o.operations {
		method, path, _ := strings.Cut(name, " ")
		want := []int{400, 401, 429, 500, 503}
		if method == "POST" || strings.HasSuffix(path, "}") {
			want = append(want, 404)
		}
		switch method {
		case "POST":
			want = append(want, 413, 415)
		case "GET":
			want = append(want, 405) // where there are no reads
		}
		if method != "GET" {
			want = append(want, 200, 403) // the reads have a 200 of their own
		}
		got := slices.Sorted(maps.Keys(o.responses[id]))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s documents %d, want %d", id, got, want)
		}
	}
}

// TestOpenAPIOutline: a change of the document changes its outline.
func TestOpenAPIOutline(t *testing.T) {
	document := openAPI(t, options())
	good := fmt.Sprint(readOutline(t, document))
	for _, change := range [][2]string{
		{"error: unknown_entity,", "error: unknown_thing,"},
		{"operationId: readWebhook\n", "operationId: showWebhook\n"},
		{`"413":`, `"414":`},
		{`/configure-webhook/{moc_id}":`, `/configure-webhook/{endpoint_id}":`},
		{"    get:\n", "    head:\n"},
	} {
		altered := strings.Replace(document, change[0], change[1], 2)
		if altered == document || fmt.Sprint(readOutline(t, altered)) == good {
			t.Errorf("%q for %q makes no difference", change[1], change[0])
		}
	}
}

// TestOpenAPICopy: every call returns a copy of its own of the file.
func TestOpenAPICopy(t *testing.T) {
	file, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, newRecorder(), options())
	clear(h.OpenAPI())
	if diff := cmp.Diff(string(file), string(h.OpenAPI())); diff != "" {
		t.Errorf("-file +document:\n%s", diff)
	}
}

// TestOpenAPIRefusals: the document lists the host's codes and texts beside our own, each as a
// text, whatever YAML would make of the word.
func TestOpenAPIRefusals(t *testing.T) {
	opts := refusing()
	opts.VariantAliases = []string{"/short"}
	opts.Refusals = append(opts.Refusals, webhookcfg.Refusal{Code: "null", Description: "100% {full}: #1"})
	document := openAPI(t, opts)
	want := webhookcfg.ErrorTable()
	want["reserved"], want["too_many_overrides"], want["null"] = 403, 403, 403
	if diff := cmp.Diff(want, readOutline(t, document).errors); diff != "" {
		t.Errorf("-want +document:\n%s", diff)
	}
	for _, line := range []string{
		`          enum: ["all_refused", "reserved", "too_many_overrides", "null"]`,
		`          enum: ["This service accepts no request that reaches all entities", "This identifier is reserved", "The plan allows 500 overrides", "100% {full}: #1"]`,
		`              value: {error: "null", error_description: "100% {full}: #1"}`,
	} {
		if strings.Count(document, "\n"+line+"\n") != 1 {
			t.Errorf("the document lacks the line %s", line)
		}
	}
	opts.Refusals = nil
	if lines := strings.Count(openAPI(t, opts), "\n"); strings.Count(document, "\n") != lines+2*3 {
		t.Errorf("%d lines without refusals, and %d with three", lines, strings.Count(document, "\n"))
	}
}
