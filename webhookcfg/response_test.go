package webhookcfg_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// golden is a whole response without its Date.
func golden(status, body string, fields ...string) string {
	fields = append(fields,
		"Cache-Control: no-store",
		"Content-Length: "+strconv.Itoa(len(body)),
		"Content-Type: application/json",
		"X-Content-Type-Options: nosniff",
		"Connection: close")
	slices.Sort(fields)
	return "HTTP/1.1 " + status + "\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n" + body
}

var date = regexp.MustCompile("Date: [^\r]*\r\n")

// whole returns a response byte for byte, with sorted fields and without the Date.
func whole(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(date.ReplaceAllString(string(all), ""), "\r\n\r\n")
	status, fields, _ := strings.Cut(head, "\r\n")
	sorted := strings.Split(fields, "\r\n")
	slices.Sort(sorted)
	return status + "\r\n" + strings.Join(sorted, "\r\n") + "\r\n\r\n" + body
}

// TestGolden pins the responses byte for byte, with at least one row for each row of
// the table of errors.
func TestGolden(t *testing.T) {
	const unauthorized = `Www-Authenticate: Basic realm="webhooks", charset="UTF-8"`
	invalidClient := golden("401 Unauthorized", errorBody("invalid_client", "Invalid client credentials"), unauthorized)
	set := `{"endpoint_id":"e1","webhook_url":"` + hookURL + `"}`

	o := options()
	o.ProbeMode = webhookcfg.ProbeEnforce
	o.Prober = prober(func(_ context.Context, _ string, target egress.URL) error {
		switch target.Reveal() {
		case "https://down.example.com/":
			return errBroken
		case "https://busy.example.com/":
			return retryError{1500 * time.Millisecond}
		}
		return nil
	})
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) {
		switch entity {
		case "foreign":
			return false, nil
		case "panic":
			panic("in EntityExists")
		case "outage":
			return false, errBroken
		}
		return true, nil
	}
	o.DeliveryStatus = func(_ context.Context, _, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		if entity != "e2" {
			return webhookcfg.DeliveryStatus{}, nil
		}
		return webhookcfg.DeliveryStatus{
			State: "stopped", Reason: "expired", LastSuccess: noon.Add(time.Hour), LastFailure: noon.Add(122 * time.Hour),
		}, nil
	}
	refusing := *o
	refusing.AllScope, refusing.BasePath = webhookcfg.AllScopeRefused, "/refusing"
	address := serve(t, newHandler(t, newRecorder(), &refusing).Before(newHandler(t, newRecorder(), o)))

	tests := []struct {
		name, request, want string
	}{
		{"set", request("POST", configure, acme, set), golden("200 OK", successBody, "Webhook-Scope: entity")},
		{"read", request("GET", configure+"/e1", acme, ""), golden("200 OK",
			`{"endpoint_id":"e1","webhook_url":"`+hookURL+`","source":"override","since":"2026-01-02T03:04:05Z"}`)},
		{"unset", request("DELETE", configure+"/e1", acme, ""), golden("200 OK", successBody, "Webhook-Scope: entity")},
		{"read none", request("GET", variant+"/e1", acme, ""), golden("200 OK",
			`{"moc_id":"e1","webhook_url":null,"source":"none","since":null}`)},
		{"set all", request("POST", configure, acme, `{"webhook_url":"`+hookURL+`"}`), golden("200 OK", successBody, "Webhook-Scope: all")},
		{"read, delivery", request("GET", configure+"/e2", acme, ""), golden("200 OK",
			`{"endpoint_id":"e2","webhook_url":"`+hookURL+`","source":"base","since":"2026-01-02T03:04:05Z","delivery":`+
				`{"state":"stopped","reason":"expired","last_success":"2026-01-02T04:04:05Z","last_failure":"2026-01-07T05:04:05Z"}}`)},
		{"unset all", request("DELETE", configure, acme, ""), golden("200 OK", successBody, "Webhook-Scope: all")},
		{"unset all, slash", request("DELETE", variant+"/", acme, ""), golden("200 OK", successBody, "Webhook-Scope: all")},
		{"list", request("GET", configure, acme, ""), golden("200 OK", `{"webhook_url":null,"since":null,"overrides":[]}`)},

		{"invalid request", request("POST", configure, acme, `{"endpoint_id":null}`), golden("400 Bad Request",
			errorBody("invalid_request", "Every value in the body must be a string; null is not one; to unset the webhook of an entity, use DELETE with its id at the end of the path"))},
		{"invalid identifier", request("DELETE", configure+"/%2f", acme, ""), golden("400 Bad Request",
			errorBody("invalid_request", "An identifier is 1 to 128 of the characters A-Z a-z 0-9 . _ ~ : @ - and neither . nor .."))},
		{"invalid URL", request("POST", configure, acme, `{"webhook_url":"http://hooks.example.com/in"}`), golden("400 Bad Request",
			errorBody("invalid_webhook_url", "The URL must be absolute with the scheme https"))},
		{"unreachable", request("POST", configure, acme, `{"webhook_url":"https://down.example.com/"}`), golden("400 Bad Request",
			errorBody("webhook_unreachable", "The webhook URL could not be reached"))},
		{"no credentials", request("POST", configure, "", set), invalidClient},
		{"unknown client", request("POST", configure, "nobody:s3cret", set), invalidClient},
		{"wrong secret", request("POST", configure, "acme:wrong", set), invalidClient},
		{"malformed credentials", request("POST", configure, "acme", set), invalidClient},
		{"other scheme", request("POST", configure, "", set, "Authorization: Bearer x"), invalidClient},
		{"twice", request("POST", configure, acme, set, "Authorization: Basic YWNtZTpzM2NyZXQ="), invalidClient},
		{"unknown client and bad body", request("POST", configure, "nobody:s3cret", `{`), invalidClient},
		{"unknown client and bad id", request("DELETE", configure+"/%2f", "nobody:s3cret", ""), invalidClient},
		{"unknown client reads", request("GET", configure+"/e1", "nobody:s3cret", ""), invalidClient},
		{"all refused", request("DELETE", "/refusing"+configure, acme, ""), golden("403 Forbidden",
			errorBody("all_refused", "This service accepts no request that reaches all entities"))},
		{"not found", request("GET", "/nowhere", "", ""), golden("404 Not Found",
			errorBody("not_found", "There is nothing at this path"))},
		{"unknown entity", request("DELETE", configure+"/foreign", acme, ""), golden("404 Not Found",
			errorBody("unknown_entity", "There is no such entity"))},
		{"method", request("PUT", configure, "", ""), golden("405 Method Not Allowed",
			errorBody("method_not_allowed", "The method is not allowed at this path"), "Allow: DELETE, GET, POST")},
		{"method of entity", request("POST", configure+"/e1", "", ""), golden("405 Method Not Allowed",
			errorBody("method_not_allowed", "The method is not allowed at this path; a POST has the id in its body, as endpoint_id"), "Allow: DELETE, GET")},
		{"method of variant", request("POST", variant+"/e1", "", ""), golden("405 Method Not Allowed",
			errorBody("method_not_allowed", "The method is not allowed at this path; a POST has the id in its body, as moc_id"), "Allow: DELETE, GET")},
		{"too large", request("POST", configure, acme, strings.Repeat(" ", 16<<10+1)), golden("413 Request Entity Too Large",
			errorBody("request_too_large", "The body has more than 16384 bytes"))},
		{"media type", request("POST", configure, acme, set, "Content-Type: text/plain"), golden("415 Unsupported Media Type",
			errorBody("unsupported_media_type", "The body must be application/json in UTF-8 without a content coding"))},
		{"throttled", request("POST", configure, acme, `{"webhook_url":"https://busy.example.com/"}`), golden("429 Too Many Requests",
			errorBody("too_many_requests", "Too many requests; try again later"), "Retry-After: 2")},
		{"defect", request("DELETE", configure+"/panic", acme, ""), golden("500 Internal Server Error",
			errorBody("server_error", "The server encountered an unexpected condition"))},
		{"outage", request("DELETE", configure+"/outage", acme, ""), golden("503 Service Unavailable",
			errorBody("temporarily_unavailable", "The service cannot complete the request now"), "Retry-After: 1")},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := whole(t, address, tt.request)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			seen[errorCode(body)] = true
		})
	}
	for name := range webhookcfg.ErrorTable() {
		if !seen[name] {
			t.Errorf("no golden response has the code %s", name)
		}
	}
}

// TestReplacedBody: a middleware can replace the body of an error, be it shorter or longer. The
// client gets all of it, at once and with its length, and can use the connection again, unless the
// response closes it.
func TestReplacedBody(t *testing.T) {
	const expect = "Expect: 100-continue"
	o := options()
	o.Timeout = time.Hour
	for _, page := range []string{"sorry", strings.Repeat("sorry ", 100)} {
		address := serve(t, hooktest.ReplaceErrors(newHandler(t, newRecorder(), o), page))
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		responses := bufio.NewReader(conn)
		for _, tt := range []struct {
			name, request string
			status        int
			closes        bool
		}{
			{"success", request("DELETE", configure+"/e1", acme, ""), 200, false},
			{"wrong secret", request("POST", configure, "acme:x", "{}"), 401, false},
			{"malformed", request("POST", configure, acme, "{}"), 400, false},
			{"not found", request("GET", "/nowhere", acme, ""), 404, false},
			{"method", request("PUT", configure, acme, "{}"), 405, false},
			{"method without a body", request("HEAD", configure, acme, ""), 405, false},
			{"success again", request("DELETE", configure+"/e1", acme, ""), 200, false},
			{"waits for a 100", request("POST", configure, "acme:x", "", "Content-Length: 100", expect), 401, true},
		} {
			method, _, _ := strings.Cut(tt.request, " ")
			_, _ = io.WriteString(conn, strings.Replace(tt.request, "Connection: close\r\n", "", 1))
			resp, err := http.ReadResponse(responses, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			body, err := io.ReadAll(resp.Body)
			want, length := page, len(page)
			switch {
			case tt.status == http.StatusOK:
				want, length = successBody, len(successBody)
			case method == http.MethodHead:
				want = ""
			}
			if resp.StatusCode != tt.status || err != nil || string(body) != want || resp.ContentLength != int64(length) || resp.Close != tt.closes {
				t.Errorf("%s: got %s, %d bytes of %q, to be closed: %t, %v", tt.name, resp.Status, resp.ContentLength, body, resp.Close, err)
			}
		}
	}
}
