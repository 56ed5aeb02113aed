package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// kinValidator is an [http.RoundTripper] that validates exchanges against a document.
type kinValidator struct {
	document  *openapi3.T
	router    routers.Router
	client    http.RoundTripper
	exchanges []exchange
}

// exchange is a validated request and its response.
type exchange struct {
	operation   string // operationId, "" if the document has none
	status      int
	body        string
	requestErr  error // violation of the request
	responseErr error // violation of the response
}

// document returns the shipped document.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	return load(t, newHandler(t, store.NewMemory(), options()).OpenAPI())
}

func load(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
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

// last returns the last exchange.
func (kin *kinValidator) last() exchange { return kin.exchanges[len(kin.exchanges)-1] }

// RoundTrip implements [http.RoundTripper]. It also sends requests that violate the document.
// The tests decide whether that's an error.
func (kin *kinValidator) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(sent))
	validated := r.Clone(r.Context())
	validated.Body = io.NopCloser(bytes.NewReader(sent))

	var ex exchange
	input, err := kin.find(validated)
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

// find returns the input to validate a request and its response. If the document has no such
// path or method, the response can only be a 404 or a 405.
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

// unescape decodes the parameters in a path. The router leaves them escaped.
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

// authenticate accepts the credentials that are valid as far as the document knows. It can't
// know how the verifier fails.
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

// TestDocument: the document is valid, and its examples match its schemas.
func TestDocument(t *testing.T) {
	if err := document(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMountedDocument: the document of a handler with a base path and aliases is valid, and
// its operations are where the handler serves them.
func TestMountedDocument(t *testing.T) {
	const basePath = "/v2/hooks:a"
	o := options()
	o.BasePath, o.VariantAliases = basePath, []string{"/short/webhook/", "/other:b"}
	h := newHandler(t, store.NewMemory(), o)
	doc := load(t, h.OpenAPI())
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	base := hooktest.Serve(t, h).URL
	kin := newKinValidator(t, doc)
	all := operations(doc)
	if len(all) != 20 {
		t.Errorf("%d operations, want 5 at each of 2 paths and 2 aliases", len(all))
	}
	for _, op := range all {
		q := request{name: op.id, method: op.method, target: basePath + op.target, client: acme, body: op.body}
		if got := q.send(t, kin, base); got != "200" || kin.last().operation != op.id {
			t.Errorf("%s: got %s from operation %q", op.id, got, kin.last().operation)
		}
		if ex := kin.last(); ex.requestErr != nil || ex.responseErr != nil {
			t.Errorf("%s: violations %v, %v", op.id, ex.requestErr, ex.responseErr)
		}
	}
}
