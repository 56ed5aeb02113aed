package contract_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// request is one row of a table: what is sent, and what is to come back.
type request struct {
	name, method, target, client, body string

	fields []string // "Name: value"; a POST is application/json if they do not say
	want   string   // status, and for a refusal the error code
	// beyond says why the document and the handler may disagree about the request;
	// "" where they must not.
	beyond string
}

// send sends the request and returns what came back in the form of want.
func (q request) send(t *testing.T, through http.RoundTripper, base string) (got string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, base+q.target, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if id, secret, ok := strings.Cut(q.client, ":"); ok {
		r.SetBasicAuth(id, secret)
	}
	for _, field := range q.fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := through.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s: %v", q.name, err)
	}
	defer resp.Body.Close()
	var refusal struct {
		Error string `json:"error"`
	}
	// Whether it is one is for the judge; without, the error code is missing.
	_ = json.NewDecoder(resp.Body).Decode(&refusal)
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + refusal.Error)
}

// malformed are the answers to requests that the document must forbid; the others
// depend on what only the service knows.
var malformed = []string{
	"400 invalid_request", "400 invalid_webhook_url", "401 invalid_client", "404 not_found",
	"405 method_not_allowed", "405", "415 unsupported_media_type",
}

// operation is one operation of the document with a request that it takes.
type operation struct{ id, method, target, body string }

// operations are those of the document by path; a path is set first, read then,
// and unset last.
func operations(doc *openapi3.T) (all []operation) {
	ids := strings.NewReplacer("{endpoint_id}", "e1", "{moc_id}", "e1")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		byMethod := doc.Paths.Value(path).Operations()
		for _, method := range slices.Backward(slices.Sorted(maps.Keys(byMethod))) {
			op := byMethod[method]
			body := ""
			if op.RequestBody != nil {
				body = example(op.RequestBody.Value.Content["application/json"].Examples["one"].Value.Value)
			}
			all = append(all, operation{op.OperationID, method, ids.Replace(path), body})
		}
	}
	return all
}

func example(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came out of a parser
	}
	return string(text)
}

// everyOperation are the rows that every operation has alike: once with success,
// and once with each failure of the verifier.
func everyOperation(doc *openapi3.T) (rows []request) {
	outcomes := map[string]string{
		acme:      "200",
		"":        "401 invalid_client",
		stranger:  "401 invalid_client",
		throttled: "429 too_many_requests",
		outage:    "503 temporarily_unavailable",
		defect:    "500 server_error",
	}
	for _, op := range operations(doc) {
		for _, client := range slices.Sorted(maps.Keys(outcomes)) {
			rows = append(rows, request{
				name: op.id + " by " + client, method: op.method, target: op.target,
				client: client, body: op.body, want: outcomes[client],
			})
		}
	}
	return rows
}
