package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// judge is an [http.RoundTripper] that holds what passes through it to a document.
type judge struct {
	document *openapi3.T
	router   routers.Router
	client   http.RoundTripper
	verdicts []verdict
}

// verdict is what the document says about one exchange.
type verdict struct {
	operation string // operationId, "" where the document has none
	status    int
	body      string
	request   error // what is wrong with the request
	response  error // what is wrong with the answer
}

// document is the document as it is shipped, altered by pairs of old and new text.
func document(t *testing.T, alterations ...string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(altered(t, alterations...))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func altered(t *testing.T, alterations ...string) []byte {
	t.Helper()
	text := string(webhookcfg.OpenAPI())
	for i := 0; i < len(alterations); i += 2 {
		if !strings.Contains(text, alterations[i]) {
			t.Fatalf("the document does not hold %q", alterations[i])
		}
		text = strings.ReplaceAll(text, alterations[i], alterations[i+1])
	}
	return []byte(text)
}

func newJudge(t *testing.T, doc *openapi3.T) *judge {
	t.Helper()
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &judge{document: doc, router: router, client: transport}
}

// last is the verdict about the exchange that came last.
func (j *judge) last() verdict { return j.verdicts[len(j.verdicts)-1] }

// RoundTrip implements [http.RoundTripper]. It passes on what violates the
// document too: whether that is wrong is for the test to say.
func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(sent))
	shown := r.Clone(r.Context())
	shown.Body = io.NopCloser(bytes.NewReader(sent))

	var v verdict
	input, err := j.find(shown)
	v.operation, v.request = input.Route.Operation.OperationID, err
	if err == nil {
		v.request = openapi3filter.ValidateRequest(r.Context(), input)
	}
	resp, err := j.client.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	v.status, v.body = resp.StatusCode, string(received)
	v.response = judgeResponse(r.Context(), input, resp.StatusCode, resp.Header, received)
	j.verdicts = append(j.verdicts, v)
	return resp, nil
}

// find returns what to judge a request and its answer by. Where the document has
// no such path or method, the answers are those that need no operation.
func (j *judge) find(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	input := &openapi3filter.RequestValidationInput{Request: r, Options: &openapi3filter.Options{
		AuthenticationFunc:                authenticate,
		IncludeResponseStatus:             true,
		RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults:               true,
	}}
	route, params, err := j.router.FindRoute(r)
	if err == nil {
		input.Route, input.PathParams = route, params
		return input, unescape(params)
	}
	responses := j.document.Components.Responses
	input.Route = &routers.Route{Spec: j.document, Operation: &openapi3.Operation{
		Responses: openapi3.NewResponses(
			openapi3.WithStatus(http.StatusNotFound, responses["NotFound"]),
			openapi3.WithStatus(http.StatusMethodNotAllowed, responses["MethodNotAllowed"])),
	}}
	return input, err
}

// unescape decodes the parameters of a path, which the router leaves as they came.
func unescape(params map[string]string) error {
	for name, value := range params {
		plain, err := url.PathUnescape(value)
		if err != nil {
			return err
		}
		params[name] = plain
	}
	return nil
}

func judgeResponse(ctx context.Context, input *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 status,
		Header:                 header,
		Options:                input.Options,
	}
	return openapi3filter.ValidateResponse(ctx, response.SetBodyBytes(body))
}

// authenticate knows who may sign in; what becomes of them then is no matter of
// the document.
func authenticate(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	id, secret, ok := input.RequestValidationInput.Request.BasicAuth()
	switch pair := id + ":" + secret; {
	case !ok:
		return errors.New("no credentials")
	case pair == acme, pair == other, pair == throttled, pair == outage, pair == defect:
		return nil
	}
	return fmt.Errorf("unknown client %q", id)
}

func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}

// TestDocument: the document is well-formed, its examples keep to its schemas.
func TestDocument(t *testing.T) {
	if err := document(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
	broken := document(t, "{message: successful}", "{message: 1}")
	if err := broken.Validate(t.Context()); err == nil {
		t.Error("an example that breaks its schema went unnoticed")
	}
}

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
