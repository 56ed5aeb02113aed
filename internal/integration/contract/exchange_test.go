package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"example.com/go-webhookcfg/store"
	"github.com/getkin/kin-openapi/openapi3"
)

// drive sends every row through a judge, and the reads also to a handler without
// them, and calls check with each row and its verdict.
func drive(t *testing.T, j *judge, check func(q request, got string, v verdict)) {
	t.Helper()
	base, mute := serveAll(t), options()
	mute.Reads = false
	withoutReads := serve(t, store.NewMemory(), mute)
	for _, q := range slices.Concat(everyOperation(document(t)), table()) {
		check(q, q.send(t, j, base), j.last())
		if q.method == http.MethodGet && q.want == "200" && q.client == acme {
			q.want, q.beyond = "405 method_not_allowed", "whether there are reads is the host's choice"
			check(q, q.send(t, j, withoutReads), j.last())
		}
	}
}

// TestExchanges holds the handler to the document: every answer is documented as
// it is, and a request breaks the document just where the handler refuses it as
// malformed. Rows that say why they are beyond the document must really be.
func TestExchanges(t *testing.T) {
	j := newJudge(t, document(t))
	drive(t, j, func(q request, got string, v verdict) {
		if got != q.want {
			t.Errorf("%s: got %s, want %s", q.name, got, q.want)
		}
		if v.response != nil {
			t.Errorf("%s: the answer is not as documented: %v", q.name, v.response)
		}
		refused := slices.Contains(malformed, got)
		if agree := refused == (v.request != nil); agree != (q.beyond == "") {
			t.Errorf("%s: got %s; the document says %v; beyond it: %q", q.name, got, v.request, q.beyond)
		}
	})
	checkCovered(t, j)
}

// checkCovered holds the document to what was seen: each status of each operation
// was answered, and each error that it shows came back byte for byte.
func checkCovered(t *testing.T, j *judge) {
	t.Helper()
	statuses, bodies := map[string]bool{}, map[string]bool{}
	for _, v := range j.verdicts {
		statuses[fmt.Sprint(v.operation, " ", v.status)] = true
		bodies[fmt.Sprint(v.status, " ", v.body)] = true
	}
	for _, path := range j.document.Paths.Map() {
		for _, op := range path.Operations() {
			for status := range op.Responses.Map() {
				if !statuses[op.OperationID+" "+status] {
					t.Errorf("%s was never answered %s", op.OperationID, status)
				}
				for _, body := range shown(op.Responses.Value(status).Value) {
					if !bodies[status+" "+body] {
						t.Errorf("%s: no answer %s was %s", op.OperationID, status, body)
					}
				}
			}
		}
	}
}

// shown are the examples of a response, as the handler would write them; reads
// have none that a test can meet to the byte.
func shown(response *openapi3.Response) (bodies []string) {
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

// TestSlash: the second spelling of unsetting all, which the document has in
// words only, takes no other method.
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
