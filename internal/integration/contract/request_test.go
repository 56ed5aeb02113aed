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

// request is a row of a table: a request and its expected response.
type request struct {
	name, method, target, client, body string

	fields []string // "Name: value"; the Content-Type of a POST defaults to JSON
	want   string   // status, and the error code of a refusal
	// deviation is the reason why the document and the handler disagree about the request.
	// It's "" if they agree.
	deviation string
}

// send sends the request, and returns the outcome in the same form as want.
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
	// A body in another form has no error code. The validator reports it.
	_ = json.NewDecoder(resp.Body).Decode(&refusal)
	return strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + refusal.Error)
}

// malformed lists the outcomes of requests that the document must forbid. Other refusals
// depend on the state of the service.
var malformed = []string{
	"400 invalid_request", "400 invalid_webhook_url", "401 invalid_client", "404 not_found",
	"405 method_not_allowed", "405", "415 unsupported_media_type",
}

// operation is an operation of the document with a valid request.
type operation struct{ id, method, target, body string }

// operations returns the operations of the document by path: first set, then read, then
// unset.
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
		panic(err) // can't happen: the value was parsed from YAML
	}
	return string(text)
}

// everyOperation returns the rows that all operations have in common: one that succeeds, and
// one for each way in which the verifier fails.
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

// The reasons why the document and the handler disagree.
const (
	deviationQuery    = "OpenAPI cannot forbid a query parameter that it does not name"
	deviationRepeat   = "JSON Schema sees an object after its keys were merged"
	deviationMedia    = "the document names the media type, not its parameters and codings"
	deviationURL      = "the pattern of a URL does not cover all its rules"
	deviationNumber   = "a number in a query has several spellings"
	deviationBody     = "the handler ignores a body where the path names one entity"
	deviationTrailing = "the library reads one JSON value and ignores the rest"
)

// table returns the rows for particular operations.
func table() []request {
	return slices.Concat(
		setRows("configure", configure, "endpoint_id", "moc_id"),
		setRows("variant", variant, "moc_id", "endpoint_id"),
		pathRows(configure), pathRows(variant),
		listRows(configure), listRows(variant),
		unknownPathRows(),
	)
}

// setRows returns the bodies of a set, valid and invalid.
func setRows(name, path, key, foreignKey string) (rows []request) {
	add := func(what, body, want, deviation string, fields ...string) {
		rows = append(rows, request{name: "set, " + name + ", " + what, method: "POST", target: path, client: acme, body: body, want: want, deviation: deviation, fields: fields})
	}
	one := func(id, url string) string { return `{"` + key + `":"` + id + `","webhook_url":"` + url + `"}` }
	const url = "https://hooks.example.com/in"
	const bad, badURL = "400 invalid_request", "400 invalid_webhook_url"

	add("all", `{"webhook_url":"`+url+`"}`, "200", "")
	add("white space", " {\n\"webhook_url\" : \""+url+"\" }\t", "200", "")
	add("escapes", `{"webhook_url":"https:\/\/hooks.example.com\/\u0069n"}`, "200", "")
	add("longest id", one(strings.Repeat("x", 128), url), "200", "")
	add("every character of ids", one("A-Za-z0-9._~:@-", url), "200", "")
	add("three dots", one("...", url), "200", "")
	add("leading dot", one(".e1", url), "200", "")
	add("address", one("e1", "https://[2606:4700::1]:8443/?q=[x]&y=%20"), "200", "")
	add("scheme in capitals", one("e1", "HTTPS://HOOKS.example.com"), "200", "")
	add("charset", one("e1", url), "200", "", "Content-Type: application/json; charset=UTF-8")
	add("unknown field", one("e1", url), "200", "", "X-Ignored: 1")

	add("no body", ``, bad, "")
	add("null", `null`, bad, "")
	add("array", `[{"webhook_url":"`+url+`"}]`, bad, "")
	add("broken", `{"webhook_url":"`+url+`"`, bad, "")
	add("two objects", `{"webhook_url":"`+url+`"}{}`, bad, deviationTrailing)
	add("no URL", `{"`+key+`":"e1"}`, bad, "")
	add("empty object", `{}`, bad, "")
	add("null URL", `{"webhook_url":null}`, bad, "")
	add("null id", `{"`+key+`":null,"webhook_url":"`+url+`"}`, bad, "")
	add("number for id", `{"`+key+`":1,"webhook_url":"`+url+`"}`, bad, "")
	add("empty id", one("", url), bad, "")
	add("dot", one(".", url), bad, "")
	add("two dots", one("..", url), bad, "")
	add("space in id", one("a b", url), bad, "")
	add("slash in id", one("a/b", url), bad, "")
	add("line break after id", one(`e1\n`, url), bad, "")
	add("id beyond ASCII", one("é", url), bad, "")
	add("id too long", one(strings.Repeat("x", 129), url), bad, "")
	add("foreign key", `{"`+foreignKey+`":"e1","webhook_url":"`+url+`"}`, bad, "")
	add("key in another case", `{"`+strings.ToUpper(key)+`":"e1","webhook_url":"`+url+`"}`, bad, "")
	add("unknown key", `{"webhook_url":"`+url+`","x":1}`, bad, "")
	add("repeated key", `{"`+key+`":"e1","`+key+`":"e1","webhook_url":"`+url+`"}`, bad, deviationRepeat)
	add("byte order mark", "\ufeff{\"webhook_url\":\""+url+"\"}", bad, "")
	add("invalid UTF-8", "{\"webhook_url\":\"https://hooks.example.com/\xff\"}", bad, "")
	add("unpaired surrogate", `{"webhook_url":"https://hooks.example.com/\ud800"}`, bad, "")

	add("empty URL", one("e1", ""), badURL, "")
	add("relative URL", one("e1", "/in"), badURL, "")
	add("other scheme", one("e1", "ftp://hooks.example.com/"), badURL, "")
	add("fragment", one("e1", url+"#x"), badURL, "")
	add("backslash", one("e1", `https://hooks.example.com\\in`), badURL, "")
	add("space in URL", one("e1", url+" "), badURL, "")
	add("URL beyond ASCII", one("e1", "https://hooks.example.com/é"), badURL, "")
	add("URL too long", one("e1", url+"/"+strings.Repeat("x", 2048)), badURL, "")
	add("http", one("e1", "http://hooks.example.com/in"), badURL, deviationURL)
	add("userinfo", one("e1", "https://a:b@hooks.example.com/in"), badURL, deviationURL)
	add("private address", one("e1", "https://10.0.0.1/"), badURL, deviationURL)
	add("number for a host", one("e1", "https://0x7f.1/"), badURL, deviationURL)
	add("localhost", one("e1", "https://localhost/"), badURL, deviationURL)
	add("port", one("e1", "https://hooks.example.com:0/"), badURL, deviationURL)

	add("unreachable", one("e1", "https://down.example.com/"), "400 webhook_unreachable", "")
	add("prober is busy", one("e1", "https://busy.example.com/"), "429 too_many_requests", "")
	add("unknown entity", one("foreign", url), "404 unknown_entity", "")
	add("refused by the host", one("reserved", url), "403 null", "")
	add("too large", one("e1", url)+strings.Repeat(" ", 16<<10), "413 request_too_large", "")
	add("no media type", one("e1", url), "415 unsupported_media_type", "", "Content-Type: ")
	add("text", one("e1", url), "415 unsupported_media_type", "", "Content-Type: text/plain")
	add("form", "webhook_url=x", "415 unsupported_media_type", "", "Content-Type: application/x-www-form-urlencoded")
	add("charset latin1", one("e1", url), "415 unsupported_media_type", deviationMedia, "Content-Type: application/json; charset=latin1")
	add("gzip", one("e1", url), "415 unsupported_media_type", deviationMedia, "Content-Encoding: gzip")
	rows = append(rows,
		request{name: "set all with a query, " + name, method: "POST", target: path + "?" + key + "=e1", client: acme, body: `{"webhook_url":"` + url + `"}`, want: bad, deviation: deviationQuery},
		request{name: "set one with a query, " + name, method: "POST", target: path + "?x=y", client: acme, body: one("e1", url), want: "200"})
	return rows
}

// pathRows returns identifiers in a path, valid and invalid.
func pathRows(path string) (rows []request) {
	add := func(target, body, want, deviation string, methods ...string) {
		for _, method := range methods {
			rows = append(rows, request{name: method + " " + target + " " + body, method: method, target: path + target, client: acme, body: body, want: want, deviation: deviation})
		}
	}
	const bad = "400 invalid_request"
	for _, id := range []string{"e1", "%65%31", "a.b_c~d:e@f-g", "...", strings.Repeat("x", 128)} {
		add("/"+id, "", "200", "", "DELETE", "GET")
	}
	for _, id := range []string{".", "..", "%2e", "%2e%2e", "%2f", "%252f", "%00", "%20", "%ff", "%C3%A9", "x%0a", "x;y", strings.Repeat("x", 129)} {
		add("/"+id, "", bad, "", "DELETE", "GET")
	}
	add("/foreign", "", "404 unknown_entity", "", "DELETE", "GET")
	add("/reserved", "", "403 null", "", "DELETE")
	add("/reserved", "", "200", "", "GET")
	add("/e1/", "", "404 not_found", "", "DELETE", "GET", "PUT")
	add("/e1/e2", "", "404 not_found", "", "DELETE", "GET")
	add("//", "", "404 not_found", "", "DELETE", "GET")
	add("/e1", "", "405 method_not_allowed", "", "POST", "PUT", "PATCH", "OPTIONS")
	add("/e1", "", "405", "", "HEAD")
	add("/e1?x=y", "", "200", "", "DELETE", "GET")
	add("/e1", "{}", "200", deviationBody, "DELETE")

	add("", "", "200", "", "DELETE", "GET")
	add("?", "", bad, deviationQuery, "DELETE")
	add("?endpoint_id=e1", "", bad, deviationQuery, "DELETE")
	add("", `{"endpoint_id":"e1"}`, bad, "", "DELETE")
	add("", "", "405 method_not_allowed", "", "PUT", "PATCH", "OPTIONS")
	add("", "", "405", "", "HEAD")
	return rows
}

// listRows returns the queries of a list, valid and invalid.
func listRows(path string) (rows []request) {
	add := func(query, want, deviation string) {
		rows = append(rows, request{name: "list " + query, method: "GET", target: path + query, client: acme, want: want, deviation: deviation})
	}
	const bad = "400 invalid_request"
	add("?limit=1", "200", "")
	add("?limit=1000&after=e1", "200", "")
	add("?after=a.b_c~d:e@f-g", "200", "")
	add("?limit=0", bad, "")
	add("?limit=-1", bad, "")
	add("?limit=1001", bad, "")
	add("?limit=ten", bad, "")
	add("?limit=1.5", bad, "")
	add("?limit=1e2", bad, "")
	add("?limit=99999999999999999999", bad, "")
	add("?limit=01", bad, deviationNumber)
	add("?limit=%2B1", bad, deviationNumber)
	add("?limit=", bad, "")
	add("?limit=1&limit=2", bad, deviationQuery)
	add("?after=", bad, "")
	add("?after=.", bad, "")
	add("?after=a/b", bad, "")
	add("?after=a&after=b", bad, deviationQuery)
	add("?before=a", bad, deviationQuery)
	add("?Limit=1", bad, deviationQuery)
	return rows
}

// unknownPathRows returns requests for unknown paths.
func unknownPathRows() (rows []request) {
	for _, target := range []string{"/", "/api/v1/configure", "/api/v1/configured/configure-webhook", "//api/v1/configure/configure-webhook", configure + "x"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			rows = append(rows, request{name: method + " " + target, method: method, target: target, want: "404 not_found"})
		}
	}
	return rows
}
