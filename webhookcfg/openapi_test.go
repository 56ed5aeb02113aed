package webhookcfg_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// outline is what the tests hold to the code. The document keeps to one layout,
// two spaces a level and one key a line, so that it can be read without a YAML
// parser.
type outline struct {
	operations map[string]string         // "METHOD /path" to operationId
	statuses   map[string]int            // component of a response to the status it is for
	errors     map[string]int            // error code to status
	answers    map[string]map[int]string // operationId to status to component of the response
}

// readOutline reads the document once from top to bottom. A response's status is
// where it is used, and responses are used before they are defined.
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
			o.answers[value] = map[int]string{}
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

var errorExample = regexp.MustCompile(`^\{error: (\w+), error_description: [^}]+\}$`)

// use notes that an operation answers a status with a component.
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
	o.answers[o.operations[strings.ToUpper(keys[2])+" "+keys[1]]][status] = name
}

// TestOpenAPIErrors holds the table of errors and the document to each other.
func TestOpenAPIErrors(t *testing.T) {
	o := readOutline(t, string(webhookcfg.OpenAPI()))
	if diff := cmp.Diff(webhookcfg.ErrorTable(), o.errors); diff != "" {
		t.Errorf("-table +document:\n%s", diff)
	}
}

// TestOpenAPIRoutes holds the routes and the document to each other.
func TestOpenAPIRoutes(t *testing.T) {
	o := readOutline(t, string(webhookcfg.OpenAPI()))
	documented := maps.Clone(o.operations)
	for _, route := range newHandler(t, newRecorder(), options()).Routes() {
		// A slash at the end is a second spelling, which the description names.
		name := route.Method + " " + strings.TrimSuffix(route.Path, "/{$}")
		id, ok := o.operations[name]
		if !ok || !strings.HasPrefix(id, route.Operation) {
			t.Errorf("%s of Routes is %q in the document, want an operationId that begins with %s", name, id, route.Operation)
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

// TestOpenAPIAnswers: an operation documents each status that it can answer, by
// what it takes, and no other.
func TestOpenAPIAnswers(t *testing.T) {
	o := readOutline(t, string(webhookcfg.OpenAPI()))
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
			want = append(want, 200) // the reads have a 200 of their own
		}
		got := slices.Sorted(maps.Keys(o.answers[id]))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s answers %d, want %d", id, got, want)
		}
	}
}

// TestOpenAPIOutline: a document that differs is read differently.
func TestOpenAPIOutline(t *testing.T) {
	document := string(webhookcfg.OpenAPI())
	good := fmt.Sprint(readOutline(t, document))
	for _, change := range [][2]string{
		{"error: unknown_entity,", "error: unknown_thing,"},
		{"operationId: readWebhook\n", "operationId: showWebhook\n"},
		{`"413":`, `"414":`},
		{"/configure-webhook/{moc_id}:", "/configure-webhook/{endpoint_id}:"},
		{"    get:\n", "    head:\n"},
	} {
		altered := strings.Replace(document, change[0], change[1], 2)
		if altered == document || fmt.Sprint(readOutline(t, altered)) == good {
			t.Errorf("%q for %q makes no difference", change[1], change[0])
		}
	}
}

// TestOpenAPICopy: who changes what it got changes nothing else.
func TestOpenAPICopy(t *testing.T) {
	clear(webhookcfg.OpenAPI())
	if got := string(webhookcfg.OpenAPI()); !strings.HasPrefix(got, "openapi: 3.1.0\n") {
		t.Errorf("it begins with %.20q", got)
	}
}
