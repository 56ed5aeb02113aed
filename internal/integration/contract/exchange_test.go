package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/getkin/kin-openapi/openapi3"
)

// drive sends every row through a validator. It also sends reads to a handler without reads,
// and requests that reach all entities to a handler that refuses them. It calls check with
// each row and its exchange.
func drive(t *testing.T, kin *kinValidator, check func(q request, got string, ex exchange)) {
	t.Helper()
	base, noReads := serveAll(t), options()
	noReads.Reads = false
	withoutReads := serve(t, store.NewMemory(), noReads)
	for _, q := range slices.Concat(everyOperation(document(t)), table()) {
		check(q, q.send(t, kin, base), kin.last())
		if q.method == http.MethodGet && q.want == "200" && q.client == acme {
			q.want, q.deviation = "405 method_not_allowed", "whether there are reads is the host's choice"
			check(q, q.send(t, kin, withoutReads), kin.last())
		}
	}
	refusing := options()
	refusing.AllScope = webhookcfg.AllScopeRefused
	withoutAll := serve(t, store.NewMemory(), refusing)
	for _, target := range []string{configure, variant} {
		for method, body := range map[string]string{"POST": `{"webhook_url":"https://hooks.example.com/all"}`, "DELETE": ""} {
			q := request{name: method + " of all where it is refused", method: method, target: target, client: acme, body: body, want: "403 all_refused"}
			check(q, q.send(t, kin, withoutAll), kin.last())
		}
	}
}

// TestExchanges: every response matches the document. A request violates the document exactly
// if the handler refuses it as malformed. Rows with a deviation must deviate from that.
func TestExchanges(t *testing.T) {
	kin := newKinValidator(t, document(t))
	drive(t, kin, func(q request, got string, ex exchange) {
		if got != q.want {
			t.Errorf("%s: got %s, want %s", q.name, got, q.want)
		}
		if ex.responseErr != nil {
			t.Errorf("%s: the response violates the document: %v", q.name, ex.responseErr)
		}
		refused := slices.Contains(malformed, got)
		if agree := refused == (ex.requestErr != nil); agree != (q.deviation == "") {
			t.Errorf("%s: got %s; the validator reports %v; deviation: %q", q.name, got, ex.requestErr, q.deviation)
		}
	})
	checkCoverage(t, kin)
}

// checkCoverage checks that the recorded responses had each status of each operation, and the
// exact body of each example of an error.
func checkCoverage(t *testing.T, kin *kinValidator) {
	t.Helper()
	statuses, bodies := map[string]bool{}, map[string]bool{}
	for _, ex := range kin.exchanges {
		statuses[fmt.Sprint(ex.operation, " ", ex.status)] = true
		bodies[fmt.Sprint(ex.status, " ", ex.body)] = true
	}
	for _, path := range kin.document.Paths.Map() {
		for _, op := range path.Operations() {
			for status := range op.Responses.Map() {
				if !statuses[op.OperationID+" "+status] {
					t.Errorf("%s never had status %s", op.OperationID, status)
				}
				for _, body := range examples(op.Responses.Value(status).Value) {
					if !bodies[status+" "+body] {
						t.Errorf("%s: no response %s was %s", op.OperationID, status, body)
					}
				}
			}
		}
	}
}

// examples returns the examples of a response as the handler writes them. It leaves out
// reads, since a test can't reproduce their values.
func examples(response *openapi3.Response) (bodies []string) {
	for _, e := range response.Content["application/json"].Examples {
		switch value := e.Value.Value.(map[string]any); {
		case value["error"] != nil:
			bodies = append(bodies, fmt.Sprintf(`{"error":%q,"error_description":%q}`, value["error"], value["error_description"]))
		case value["message"] != nil:
			bodies = append(bodies, fmt.Sprintf(`{"message":%q}`, value["message"]))
		}
	}
	return bodies
}

// TestSlash: the path of unset-all with a trailing slash, which the document only describes,
// allows no other method.
func TestSlash(t *testing.T) {
	base := serveAll(t)
	for _, target := range []string{configure + "/", variant + "/"} {
		for method, want := range map[string]string{"DELETE": "200", "POST": "405 method_not_allowed", "GET": "405 method_not_allowed"} {
			q := request{name: method + " " + target, method: method, target: target, client: acme}
			if got := q.send(t, http.DefaultTransport, base); got != want {
				t.Errorf("%s: got %s, want %s", q.name, got, want)
			}
		}
	}
}

// TestAlteredDocuments: the validator finds violations of altered documents.
func TestAlteredDocuments(t *testing.T) {
	tests := []struct {
		name        string
		alterations []string // pairs of old and new text
	}{
		{"another status", []string{`"401":`, `"402":`}},
		{"a status of one operation", []string{`"413":`, `"414":`}},
		{"another method", []string{"    delete:\n", "    put:\n"}},
		{"another path", []string{variant + `":`, variant + `s":`}},
		{"extra field", []string{"required: [message]", "required: [message, id]"}},
		{"missing field", []string{"        source:\n          $ref: \"#/components/schemas/Source\"\n", "", "webhook_url, source, since]", "webhook_url, since]"}},
		{"another name of a field", []string{"required: [endpoint_id, webhook_url, since]\n      properties:\n        endpoint_id:", "required: [id, webhook_url, since]\n      properties:\n        id:"}},
		{"another type", []string{"type: array\n          maxItems: 1000", "type: object\n          maxProperties: 1000"}},
		{"no null", []string{`type: [string, "null"]`, `type: string`}},
		{"another message", []string{"enum: [successful]", "enum: [success]"}},
		{"another error code", []string{"enum: [not_found, unknown_entity]", "enum: [not_found]"}},
		{"another text", []string{"enum: [Invalid client credentials]", "enum: [Wrong secret]"}},
		{"another media type", []string{"application/json:", "application/problem+json:"}},
		{"extra header", []string{"        Retry-After:\n", "        Retry-At:\n"}},
		{"another header", []string{"enum: [no-store]", "enum: [no-cache]"}},
		{"another challenge", []string{`pattern: '^Basic realm=`, `pattern: '^Digest realm=`}},
	}
	base, rows := serveAll(t), sampleRows(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if violations(t, newKinValidator(t, document(t, tt.alterations...)), base, rows) == 0 {
				t.Error("no violation was found")
			}
		})
	}
	if n := violations(t, newKinValidator(t, document(t)), base, rows); n != 0 {
		t.Errorf("the shipped document: %d violations", n)
	}
}

// violations counts the responses that violate the document.
func violations(t *testing.T, kin *kinValidator, base string, rows []request) (n int) {
	t.Helper()
	for _, q := range rows {
		q.send(t, kin, base)
		if kin.last().responseErr != nil {
			n++
		}
	}
	return n
}

// sampleRows returns a row for each operation and outcome.
func sampleRows(t *testing.T) []request {
	t.Helper()
	rows := everyOperation(document(t))
	seen := map[string]bool{}
	for _, q := range setRows("configure", configure, "endpoint_id", "moc_id") {
		if !seen[q.want] {
			rows = append(rows, q)
		}
		seen[q.want] = true
	}
	return rows
}

// TestAlteredHandlers: the validator finds violations by altered handlers.
func TestAlteredHandlers(t *testing.T) {
	h, err := webhookcfg.NewHandler(store.NewMemory(), verifier(verify), options())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		alter func(*httptest.ResponseRecorder)
	}{
		{"no Retry-After", func(w *httptest.ResponseRecorder) { w.Header().Del("Retry-After") }},
		{"no challenge", func(w *httptest.ResponseRecorder) { w.Header().Del("WWW-Authenticate") }},
		{"cacheable", func(w *httptest.ResponseRecorder) { w.Header().Set("Cache-Control", "max-age=1") }},
		{"text", func(w *httptest.ResponseRecorder) { w.Header().Set("Content-Type", "text/plain") }},
		{"created", func(w *httptest.ResponseRecorder) { w.Code = http.StatusCreated }},
		{"no body", func(w *httptest.ResponseRecorder) { w.Body.Reset() }},
		{"another code", replaceBody(`"error":"invalid_client"`, `"error":"unauthorized"`)},
		{"extra field", replaceBody(`{"`, `{"id":1,"`)},
		{"missing field", replaceBody(`,"error_description":"The server encountered an unexpected condition"`, ``)},
		{"a quotation mark", replaceBody(`The service`, `The \"service\"`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := hooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				recorded := httptest.NewRecorder()
				h.ServeHTTP(recorded, r)
				recorded.Header().Del("Content-Length")
				tt.alter(recorded)
				maps.Copy(w.Header(), recorded.Header())
				w.WriteHeader(recorded.Code)
				_, _ = w.Write(recorded.Body.Bytes())
			})).URL
			if violations(t, newKinValidator(t, document(t)), base, everyOperation(document(t))) == 0 {
				t.Error("no violation was found")
			}
		})
	}
}

func replaceBody(old, new string) func(*httptest.ResponseRecorder) {
	return func(w *httptest.ResponseRecorder) {
		text := strings.ReplaceAll(w.Body.String(), old, new)
		w.Body.Reset()
		w.Body.WriteString(text)
	}
}
