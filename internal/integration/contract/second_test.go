package contract_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// second judges with a library that shares no parser with the first, so that a
// document is not good only because one library reads it kindly.
type second struct {
	validator validator.Validator
	client    http.RoundTripper
	verdict   verdict // of the last exchange
}

func newSecond(t *testing.T, document []byte) *second {
	t.Helper()
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &second{validator: v, client: transport}
}

// RoundTrip implements [http.RoundTripper].
func (s *second) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	fresh := func() *http.Request {
		copied := r.Clone(r.Context())
		copied.Body = io.NopCloser(bytes.NewReader(sent))
		return copied
	}
	resp, err := s.client.RoundTrip(fresh())
	if err != nil {
		return nil, err
	}
	received, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	s.verdict = verdict{status: resp.StatusCode, body: string(received)}
	if good, problems := s.validator.ValidateHttpRequest(fresh()); !good {
		s.verdict.request = fmt.Errorf("%v", problems)
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	if good, problems := s.validator.ValidateHttpResponse(fresh(), resp); !good {
		s.verdict.response = fmt.Errorf("%v", problems)
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	return resp, nil
}

// needsNoOperation: the library knows no answers but those of operations.
func needsNoOperation(q request) bool {
	return strings.HasPrefix(q.want, "405") || q.want == "404 not_found"
}

// TestSecondJudge: for the second library too the answers of every operation are
// as documented, and what is answered 200 was a good request.
func TestSecondJudge(t *testing.T) {
	base := serveAll(t)
	s := newSecond(t, altered(t))
	rows := slices.Concat(controls(t), pathRows(variant), listRows(variant))
	for _, q := range slices.DeleteFunc(rows, needsNoOperation) {
		if got := q.send(t, s, base); got == "200" && q.beyond == "" && s.verdict.request != nil {
			t.Errorf("%s: the request is not as documented: %v", q.name, s.verdict.request)
		}
		if s.verdict.response != nil {
			t.Errorf("%s: the answer is not as documented: %v", q.name, s.verdict.response)
		}
	}
	for _, alteration := range [][]string{
		{`"401":`, `"403":`}, {"required: [message]", "required: [message, id]"}, {"    delete:\n", "    put:\n"}, {"enum: [successful]", "enum: [success]"},
	} {
		s, found := newSecond(t, altered(t, alteration...)), false
		for _, q := range everyOperation(document(t)) {
			q.send(t, s, base)
			found = found || s.verdict.response != nil
		}
		if !found {
			t.Errorf("%q: nothing was found", alteration)
		}
	}
}
