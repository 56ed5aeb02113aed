package webhookcfg_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// steps drives a handler with short commands and returns the responses. The
// commands are: set URL, set ID URL, unset, unset ID, get ID, list [QUERY]. A
// leading "moc " selects the variant, a leading "other " signs in as other.
func steps(t *testing.T, address string, commands ...string) []string {
	t.Helper()
	var bodies []string
	for _, command := range commands {
		credentials, path, key := acme, configure, "endpoint_id"
		if rest, ok := strings.CutPrefix(command, "other "); ok {
			command, credentials = rest, other
		}
		if rest, ok := strings.CutPrefix(command, "moc "); ok {
			command, path, key = rest, variant, "moc_id"
		}
		word := strings.Fields(command)
		var a response
		switch {
		case word[0] == "set" && len(word) == 2:
			a = raw(t, address, request("POST", path, credentials, fmt.Sprintf(`{"webhook_url":%q}`, word[1])))
		case word[0] == "set":
			a = raw(t, address, request("POST", path, credentials, fmt.Sprintf(`{%q:%q,"webhook_url":%q}`, key, word[1], word[2])))
		case word[0] == "unset" && len(word) == 1:
			a = raw(t, address, request("DELETE", path, credentials, ""))
		case word[0] == "unset":
			a = raw(t, address, request("DELETE", path+"/"+word[1], credentials, ""))
		case word[0] == "get":
			a = raw(t, address, request("GET", path+"/"+word[1], credentials, ""))
		case word[0] == "list":
			a = raw(t, address, request("GET", path+strings.Join(word[1:], ""), credentials, ""))
		default:
			t.Fatalf("unknown command %q", command)
		}
		if a.Status != http.StatusOK {
			a.Body = fmt.Sprint(a.Status, " ", errorCode(a.Body))
		}
		bodies = append(bodies, a.Body)
	}
	return bodies
}

func shown(key, id, url, source string) string {
	since := `"2026-01-02T03:04:05Z"`
	if source == "none" {
		since = "null"
	}
	if url != "" {
		url = `"` + url + `"`
	} else {
		url = "null"
	}
	return fmt.Sprintf(`{"%s":"%s","webhook_url":%s,"source":"%s","since":%s}`, key, id, url, source, since)
}

func TestOperations(t *testing.T) {
	const (
		u, v = "https://u.example.com/x?a=1&b=[2]", "https://v.example.com:8443/"
		ok   = successBody
	)
	tests := []struct {
		name     string
		commands []string
		want     []string
	}{
		{
			"an override beats the base",
			[]string{"set " + u, "set e1 " + v, "get e1", "get e2"},
			[]string{ok, ok, shown("endpoint_id", "e1", v, "override"), shown("endpoint_id", "e2", u, "base")},
		}, {
			"unset of one does not fall back to the base",
			[]string{"set " + u, "set e1 " + v, "unset e1", "get e1", "get e2"},
			[]string{ok, ok, ok, shown("endpoint_id", "e1", "", "off"), shown("endpoint_id", "e2", u, "base")},
		}, {
			"set of all reaches what was off",
			[]string{"set " + u, "unset e1", "set " + v, "get e1"},
			[]string{ok, ok, ok, shown("endpoint_id", "e1", v, "base")},
		}, {
			"unset of all drops overrides",
			[]string{"set e1 " + u, "set " + v, "set e2 " + u, "unset", "get e1", "get e2", "get e3"},
			[]string{ok, ok, ok, ok, shown("endpoint_id", "e1", "", "none"), shown("endpoint_id", "e2", "", "none"), shown("endpoint_id", "e3", "", "none")},
		}, {
			"without a base an unset leaves nothing",
			[]string{"set e1 " + u, "unset e1", "get e1", "unset e1", "unset"},
			[]string{ok, ok, shown("endpoint_id", "e1", "", "none"), ok, ok},
		}, {
			"both forms share one key space",
			[]string{"moc set m1 " + u, "get m1", "unset m1", "moc get m1", "set m2 " + v, "moc unset m2", "moc get m2", "moc set " + u, "moc get m2", "moc unset", "get m1"},
			[]string{
				ok, shown("endpoint_id", "m1", u, "override"), ok, shown("moc_id", "m1", "", "none"), ok, ok, shown("moc_id", "m2", "", "none"),
				ok, shown("moc_id", "m2", u, "base"), ok, shown("endpoint_id", "m1", "", "none"),
			},
		}, {
			"clients do not meet",
			[]string{"set e1 " + u, "other set " + v, "get e1", "other get e1", "other unset", "get e1", "unset", "other set e1 " + v, "get e1"},
			[]string{
				ok, ok, shown("endpoint_id", "e1", u, "override"), shown("endpoint_id", "e1", v, "base"), ok,
				shown("endpoint_id", "e1", u, "override"), ok, ok, shown("endpoint_id", "e1", "", "none"),
			},
		}, {
			"a refused URL leaves what was",
			[]string{"set e1 " + u, "set e1 http://x.example.com/", "set http://x.example.com/", "set e1 https://127.0.0.1/", "get e1"},
			[]string{ok, "400 invalid_webhook_url", "400 invalid_webhook_url", "400 invalid_webhook_url", shown("endpoint_id", "e1", u, "override")},
		}, {
			"list",
			[]string{
				"list", "set b " + u, "set " + v, "set c " + u, "set a " + v, "unset d", "set B " + u,
				"list", "moc list ?limit=2", "list ?limit=2&after=a", "list ?after=c", "list ?after=d", "other list",
			},
			[]string{
				`{"webhook_url":null,"since":null,"overrides":[]}`, ok, ok, ok, ok, ok, ok,
				listed("", v, "endpoint_id", "B", u, "a", v, "c", u, "d", ""),
				listed("a", v, "moc_id", "B", u, "a", v),
				listed("", v, "endpoint_id", "c", u, "d", ""),
				listed("", v, "endpoint_id", "d", ""),
				listed("", v, "endpoint_id"),
				`{"webhook_url":null,"since":null,"overrides":[]}`,
			},
		}, {
			"bad queries of a list",
			[]string{
				"list ?limit=0", "list ?limit=%2B5", "list ?limit=005", "list ?limit=1001", "list ?limit=x", "list ?limit=", "list ?limit=1&limit=1", "list ?after=", "list ?after=a%2Fb",
				"list ?endpoint_id=e1", "list ?after=a&after=b", "list ?limit=1;after=b", "list ?%zz", "list ?limit=1000",
			},
			[]string{
				"400 invalid_request", "400 invalid_request", "400 invalid_request", "400 invalid_request", "400 invalid_request", "400 invalid_request", "400 invalid_request",
				"400 invalid_request", "400 invalid_request",
				"400 invalid_request", "400 invalid_request", "400 invalid_request", "400 invalid_request", `{"webhook_url":null,"since":null,"overrides":[]}`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := serve(t, newHandler(t, newRecorder(), options()))
			if diff := cmp.Diff(tt.want, steps(t, address, tt.commands...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// listed is the JSON of a page of overrides, given as pairs of entity and URL.
func listed(next, base, key string, pairs ...string) string {
	const since = `"since":"2026-01-02T03:04:05Z"`
	var overrides []string
	for pair := range slices.Chunk(pairs, 2) {
		url := `"` + pair[1] + `"`
		if pair[1] == "" {
			url = "null"
		}
		overrides = append(overrides, fmt.Sprintf(`{"%s":"%s","webhook_url":%s,%s}`, key, pair[0], url, since))
	}
	if next != "" {
		next = `,"next":"` + next + `"`
	}
	return fmt.Sprintf(`{"webhook_url":"%s",%s,"overrides":[%s]%s}`, base, since, strings.Join(overrides, ","), next)
}

// TestRefusedSets: a refused set does not reach the store.
func TestRefusedSets(t *testing.T) {
	st := newRecorder()
	address := serve(t, newHandler(t, st, options()))
	const url = `"webhook_url":"` + hookURL + `"`
	long := strings.Repeat("x", 2048-len("https://a.example.com/"))
	tests := []struct {
		name, request, want string
	}{
		{"null id", request("POST", configure, acme, `{"endpoint_id":null,`+url+`}`), "400 invalid_request"},
		{"empty id", request("POST", configure, acme, `{"endpoint_id":"",`+url+`}`), "400 invalid_request"},
		{"dot", request("POST", configure, acme, `{"endpoint_id":".",`+url+`}`), "400 invalid_request"},
		{"dots", request("POST", configure, acme, `{"endpoint_id":"..",`+url+`}`), "400 invalid_request"},
		{"slash", request("POST", configure, acme, `{"endpoint_id":"a/b",`+url+`}`), "400 invalid_request"},
		{"space", request("POST", configure, acme, `{"endpoint_id":" a",`+url+`}`), "400 invalid_request"},
		{"129 bytes", request("POST", configure, acme, `{"endpoint_id":"`+strings.Repeat("x", 129)+`",`+url+`}`), "400 invalid_request"},
		{"other key", request("POST", configure, acme, `{"moc_id":"a",`+url+`}`), "400 invalid_request"},
		{"other key of variant", request("POST", variant, acme, `{"endpoint_id":"a",`+url+`}`), "400 invalid_request"},
		{"case", request("POST", configure, acme, `{"Endpoint_Id":"a",`+url+`}`), "400 invalid_request"},
		{"query on all", request("POST", configure+"?endpoint_id=a", acme, `{`+url+`}`), "400 invalid_request"},
		{"no body", request("POST", configure, acme, ""), "400 invalid_request"},
		{"cut body", request("POST", configure, acme, "", "Content-Length: 30") + "{" + url, "400 invalid_request"},
		{"URL missing", request("POST", configure, acme, `{"endpoint_id":"a"}`), "400 invalid_request"},
		{"URL empty", request("POST", configure, acme, `{"webhook_url":""}`), "400 invalid_webhook_url"},
		{"URL with a newline", request("POST", configure, acme, `{"webhook_url":"https://a.example.com/\n"}`), "400 invalid_webhook_url"},
		{"URL of 2049 bytes", request("POST", configure, acme, `{"webhook_url":"https://a.example.com/x`+long+`"}`), "400 invalid_webhook_url"},
		{"chunked and too large", request("POST", configure, acme, "", "Transfer-Encoding: chunked") +
			"5000\r\n" + strings.Repeat(" ", 0x5000) + "\r\n0\r\n\r\n", "413 request_too_large"},
		{"no media type", request("POST", configure, acme, `{`+url+`}`, "Content-Type:"), "415 unsupported_media_type"},
		{"text", request("POST", configure, acme, `{`+url+`}`, "Content-Type: text/json"), "415 unsupported_media_type"},
		{"form", request("POST", configure, acme, `{`+url+`}`, "Content-Type: application/x-www-form-urlencoded"), "415 unsupported_media_type"},
		{"charset", request("POST", configure, acme, `{`+url+`}`, "Content-Type: application/json; charset=latin1"), "415 unsupported_media_type"},
		{"two types", request("POST", configure, acme, `{`+url+`}`, "Content-Type: application/json", "Content-Type: application/json"), "415 unsupported_media_type"},
		{"gzip", request("POST", configure, acme, `{`+url+`}`, "Content-Encoding: gzip"), "415 unsupported_media_type"},
		{"HEAD", request("HEAD", configure+"/x", acme, ""), "405 "},
		{"OPTIONS", request("OPTIONS", configure, acme, ""), "405 method_not_allowed"},
		{"lower case", request("delete", configure, acme, ""), "405 method_not_allowed"},
		{"set with a slash", request("POST", configure+"/", acme, `{`+url+`}`), "405 method_not_allowed"},
		{"override header", request("PUT", configure, acme, `{`+url+`}`, "X-HTTP-Method-Override: POST"), "405 method_not_allowed"},
	}
	for _, tt := range tests {
		a := raw(t, address, tt.request)
		if got := fmt.Sprint(a.Status, " ", errorCode(a.Body)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if changes := st.take(); changes != nil {
			t.Errorf("%s: the store saw %q", tt.name, changes)
		}
	}
	accepted := []string{
		request("POST", configure, acme, `{`+url+`}`, "Content-Type: Application/JSON; Charset=UTF-8"),
		request("POST", configure, acme, `{`+url+`}`, "Content-Encoding: identity"),
		request("POST", configure+"?x=y", acme, `{"endpoint_id":"a",`+url+`}`),
		request("POST", configure, acme, `{"webhook_url":"https://a.example.com/`+long+`"}`),
		request("POST", configure, acme, "", "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n{%s}\r\n0\r\n\r\n", len(url)+2, url),
	}
	for i, accepted := range accepted {
		if a := raw(t, address, accepted); a.Status != http.StatusOK || len(st.take()) != 1 {
			t.Errorf("accepted request %d: got %v", i, a)
		}
	}
}

func TestReadsAreOff(t *testing.T) {
	o := options()
	o.Reads = false
	address := serve(t, newHandler(t, newRecorder(), o))
	if diff := cmp.Diff([]string{"405 method_not_allowed", "405 method_not_allowed"}, steps(t, address, "get e1", "list")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
