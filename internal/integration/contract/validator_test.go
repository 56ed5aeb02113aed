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

// kinValidator is an [http.RoundTripper] that holds what passes through it to a document.
type kinValidator struct {
	document  *openapi3.T
	router    routers.Router
	client    http.RoundTripper
	exchanges []exchange
}

// exchange is what the document says about one exchange.
type exchange struct {
	operation   string // operationId, "" where the document has none
	status      int
	body        string
	requestErr  error // what is wrong with the request
	responseErr error // what is wrong with the answer
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

func newKinValidator(t *testing.T, doc *openapi3.T) *kinValidator {
	t.Helper()
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kinValidator{document: doc, router: router, client: transport}
}

// last is the exchange about the exchange that came last.
func (kin *kinValidator) last() exchange { return kin.exchanges[len(kin.exchanges)-1] }

// RoundTrip implements [http.RoundTripper]. It passes on what violates the
// document too: whether that is wrong is for the test to say.
func (kin *kinValidator) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(sent))
	shown := r.Clone(r.Context())
	shown.Body = io.NopCloser(bytes.NewReader(sent))

	var ex exchange
	input, err := kin.find(shown)
	ex.operation, ex.requestErr = input.Route.Operation.OperationID, err
	if err == nil {
		ex.requestErr = openapi3filter.ValidateRequest(r.Context(), input)
	}
	resp, err := kin.client.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	ex.status, ex.body = resp.StatusCode, string(received)
	ex.responseErr = validateResponse(r.Context(), input, resp.StatusCode, resp.Header, received)
	kin.exchanges = append(kin.exchanges, ex)
	return resp, nil
}

// find returns what to judge a request and its answer by. Where the document has
// no such path or method, the answers are those that need no operation.
func (kin *kinValidator) find(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	input := &openapi3filter.RequestValidationInput{Request: r, Options: &openapi3filter.Options{
		AuthenticationFunc:                authenticate,
		IncludeResponseStatus:             true,
		RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults:               true,
	}}
	route, params, err := kin.router.FindRoute(r)
	if err == nil {
		input.Route, input.PathParams = route, params
		return input, unescape(params)
	}
	responses := kin.document.Components.Responses
	input.Route = &routers.Route{Spec: kin.document, Operation: &openapi3.Operation{
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

func validateResponse(ctx context.Context, input *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
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

// pb33fValidator judges with a library that shares no parser with the first, so that a
// document is not good only because one library reads it kindly.
type pb33fValidator struct {
	validator validator.Validator
	client    http.RoundTripper
	exchange  exchange // of the last exchange
}

func newPB33FValidator(t *testing.T, document []byte) *pb33fValidator {
	t.Helper()
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	val, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &pb33fValidator{validator: val, client: transport}
}

// RoundTrip implements [http.RoundTripper].
func (s *pb33fValidator) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	clone := func() *http.Request {
		copied := r.Clone(r.Context())
		copied.Body = io.NopCloser(bytes.NewReader(sent))
		return copied
	}
	resp, err := s.client.RoundTrip(clone())
	if err != nil {
		return nil, err
	}
	received, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	s.exchange = exchange{status: resp.StatusCode, body: string(received)}
	if good, problems := s.validator.ValidateHttpRequest(clone()); !good {
		s.exchange.requestErr = fmt.Errorf("%v", problems)
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	if good, problems := s.validator.ValidateHttpResponse(clone(), resp); !good {
		s.exchange.responseErr = fmt.Errorf("%v", problems)
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	return resp, nil
}

// needsNoOperation: the library knows no answers but those of operations.
func needsNoOperation(q request) bool {
	return strings.HasPrefix(q.want, "405") || q.want == "404 not_found"
}

// TestSecondValidator: for the second library too the answers of every operation are
// as documented, and what is answered 200 was a good request.
func TestSecondValidator(t *testing.T) {
	base := serveAll(t)
	s := newPB33FValidator(t, altered(t))
	rows := slices.Concat(sampleRows(t), pathRows(variant), listRows(variant))
	for _, q := range slices.DeleteFunc(rows, needsNoOperation) {
		if got := q.send(t, s, base); got == "200" && q.deviation == "" && s.exchange.requestErr != nil {
			t.Errorf("%s: the request is not as documented: %v", q.name, s.exchange.requestErr)
		}
		if s.exchange.responseErr != nil {
			t.Errorf("%s: the answer is not as documented: %v", q.name, s.exchange.responseErr)
		}
	}
	for _, alteration := range [][]string{
		{`"401":`, `"403":`}, {"required: [message]", "required: [message, id]"}, {"    delete:\n", "    put:\n"}, {"enum: [successful]", "enum: [success]"},
	} {
		s, found := newPB33FValidator(t, altered(t, alteration...)), false
		for _, q := range everyOperation(document(t)) {
			q.send(t, s, base)
			found = found || s.exchange.responseErr != nil
		}
		if !found {
			t.Errorf("%q: nothing was found", alteration)
		}
	}
}
