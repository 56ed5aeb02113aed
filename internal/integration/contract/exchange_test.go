package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

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
