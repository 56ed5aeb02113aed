package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/getkin/kin-openapi/openapi3"
)

// countingStore is a store that counts its changes.
type countingStore struct {
	*store.Memory
	changes atomic.Int64
}

func (c *countingStore) Apply(ctx context.Context, change webhookcfg.Change) error {
	c.changes.Add(1)
	return c.Memory.Apply(ctx, change)
}

// TestGeneratedViolations generates requests that the schemas forbid. The handler must refuse
// each with the specified error and change nothing, and the validator must report a violation
// by the request.
func TestGeneratedViolations(t *testing.T) {
	st := &countingStore{Memory: store.NewMemory()}
	base, doc := serve(t, st, options()), document(t)
	kin := newKinValidator(t, doc)
	sent := 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for method, op := range doc.Paths.Value(path).Operations() {
			for _, q := range slices.Concat(bodyViolations(op), parameterViolations(op, path)) {
				q.method, q.client = method, acme
				if q.target == "" {
					q.target = path
				}
				sent++
				got := q.send(t, kin, base)
				if ex := kin.last(); got != q.want || ex.requestErr == nil || ex.responseErr != nil {
					t.Errorf("%s, %s: got %s, want %s; the validator reports %v for the request and %v for the response", op.OperationID, q.name, got, q.want, ex.requestErr, ex.responseErr)
				}
			}
		}
	}
	if n := st.changes.Load(); n != 0 {
		t.Errorf("%d changes reached the store", n)
	}
	if sent < 150 {
		t.Errorf("only %d violations were generated", sent)
	}
}

// bodyViolations returns bodies that violate the schema in one place each.
func bodyViolations(op *openapi3.Operation) (rows []request) {
	if op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content["application/json"]
	add := func(name string, body any, want string, fields ...string) {
		rows = append(rows, request{name: name, body: example(body), want: want, fields: fields})
	}
	for _, e := range media.Examples {
		good := e.Value.Value.(map[string]any)
		for _, other := range []any{nil, true, 1, "x", []any{}, []any{good}} {
			add(fmt.Sprintf("%v for the object", other), other, "400 invalid_request")
		}
		for _, other := range []string{"text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonx", "*/*"} {
			add("as "+other, good, "415 unsupported_media_type", "Content-Type: "+other)
		}
		for _, name := range media.Schema.Value.Required {
			add("without "+name, without(good, name), "400 invalid_request")
		}
		for name, property := range media.Schema.Value.Properties {
			for _, other := range []any{nil, true, 1, []any{"x"}, map[string]any{}} {
				add(fmt.Sprintf("%v for %s", other, name), with(good, name, other), "400 invalid_request")
			}
			for _, other := range badStrings(property.Value) {
				add(fmt.Sprintf("%s as %.40q", name, other), with(good, name, other), "400 "+errorOf(name))
			}
			for _, other := range []string{strings.ToUpper(name), name + " ", "_" + name, strings.ReplaceAll(name, "_", "")} {
				add("another key "+other, with(good, other, good[name]), "400 invalid_request")
			}
		}
	}
	return rows
}

// errorOf returns the error code for a string that violates the schema of a property.
func errorOf(property string) string {
	if property == "webhook_url" {
		return "invalid_webhook_url"
	}
	return "invalid_request"
}

// parameterViolations returns requests that violate the schema of one parameter each.
func parameterViolations(op *openapi3.Operation, path string) (rows []request) {
	for _, parameter := range op.Parameters {
		p := parameter.Value
		for _, value := range badValues(p.Schema.Value) {
			target := path + "?" + p.Name + "=" + url.QueryEscape(value)
			if p.In == openapi3.ParameterInPath {
				target = strings.ReplaceAll(path, "{"+p.Name+"}", strings.ReplaceAll(url.PathEscape(value), ".", "%2e"))
			}
			if value != "" { // in a path, an empty one is another operation
				rows = append(rows, request{name: fmt.Sprintf("%s as %.40q", p.Name, value), target: target, want: "400 invalid_request"})
			}
		}
	}
	return rows
}

// badValues returns values that violate the schema of a parameter.
func badValues(schema *openapi3.Schema) []string {
	if !schema.Type.Is("integer") {
		return badStrings(schema)
	}
	return []string{fmt.Sprint(*schema.Min - 1), fmt.Sprint(*schema.Max + 1), "x", "1.5", "true", "null"}
}

// badStrings returns strings that violate a schema: one that's too long, and those from a
// fixed list that don't match the pattern.
func badStrings(schema *openapi3.Schema) (bad []string) {
	pattern := regexp.MustCompile(schema.Pattern)
	filler := strings.Trim(fmt.Sprint(schema.Examples[0]), "/")
	long := filler + strings.Repeat("x", int(*schema.MaxLength)+1-len(filler))
	if !pattern.MatchString(long) {
		panic("the long string must violate the length only: " + long)
	}
	bad = append(bad, long)
	for _, candidate := range []string{"", ".", "..", " ", "e 1", " e1", "e1\n", "e1\t", "e1\x00", "é", "e1\\", "e1#", "e1?", "e1/", "e1%", "null", "//e1", "data:x", "https:e1", "https://e1#", "https:// e1"} {
		if !pattern.MatchString(candidate) {
			bad = append(bad, candidate)
		}
	}
	return bad
}

func with(object map[string]any, name string, value any) map[string]any {
	object = maps.Clone(object)
	object[name] = value
	return object
}

func without(object map[string]any, name string) map[string]any {
	object = maps.Clone(object)
	delete(object, name)
	return object
}

// TestIdentifierPattern compares the document's pattern with the handler's syntax, on random
// strings of characters that matter to one of them.
func TestIdentifierPattern(t *testing.T) {
	identifier := document(t).Components.Schemas["Identifier"].Value
	pattern := regexp.MustCompile(identifier.Pattern)
	base := serveAll(t)
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "Z", "0", ".", ".", ".", "_", "~", ":", "@", "-", "/", "%", "+", " ", "é", "\n", "\u0000", "\u017f"}
	outcomes := map[bool]int{}
	for range 1500 {
		var id strings.Builder
		for range random.IntN(5) {
			id.WriteString(strings.Repeat(alphabet[random.IntN(len(alphabet))], 1+random.IntN(2)*random.IntN(60)))
		}
		text := id.String()
		want := pattern.MatchString(text) && len(text) >= int(identifier.MinLength) && len(text) <= int(*identifier.MaxLength)
		body, err := json.Marshal(map[string]string{"moc_id": text, "webhook_url": "https://hooks.example.com/in"})
		if err != nil {
			t.Fatal(err)
		}
		q := request{name: text, method: http.MethodPost, target: variant, client: acme, body: string(body)}
		if got := q.send(t, http.DefaultTransport, base); got != "200" && got != "400 invalid_request" || (got == "200") != want {
			t.Errorf("%q: got %s; allowed by the document: %v", text, got, want)
		}
		outcomes[want]++
	}
	if min(outcomes[true], outcomes[false]) < 200 {
		t.Errorf("valid and invalid: %v", outcomes)
	}
}
