package mounttest

import "strings"

// protocol is a version of HTTP.
type protocol string

const (
	http10 protocol = "HTTP/1.0"
	http11 protocol = "HTTP/1.1"
	http2  protocol = "HTTP/2.0"
)

// attempt is a request that means one entity, or nothing.
type attempt struct {
	class, advice  string
	version        protocol
	method, target string
	fields         []string // of the header, beyond those of every request
	body           string   // "{url}" stands for the webhook URL
	chunked        bool
}

// Paths of the interface.
const (
	configure = "/api/v1/configure/configure-webhook"
	variant   = "/api/v1/configuration/configure-webhook"
)

// suffixes follow the path of the resource; "{id}" stands for the entity. Something that
// cleans, decodes, cuts or trims the path turns each of them into the path of all.
var suffixes = []struct {
	class, advice string
	suffixes      []string
}{
	{"dots", advicePath, []string{
		"/.", "/./", "/././", "/{id}/..", "/{id}/../", "/{id}/./..", "/{id}/x/../..", "/{id}/../.", "/../configure-webhook",
		"/../configure-webhook/", "/{id}/../../configure-webhook", "/..", "/../",
	}},
	{"slashes", advicePath, []string{"//", "///", "//.", "/.//", "//{id}/..", "/{id}//..", "/{id}//../..", "//../configure-webhook"}},
	{"escapes", advicePath, []string{
		"/%2e", "/%2E", "/%2e/", "/{id}/%2e%2e", "/{id}/%2e%2e/", "/{id}/%2E.", "/{id}/.%2e", "/%2e%2e/configure-webhook",
		"/%2f", "/%2F", "/%2f%2f", "%2f", "%2F", "/.%2f", "/%2e%2f", "/{id}%2f..", "/{id}%2F..", "/{id}%2f..%2f", "/{id}%2f%2e%2e",
		"/{id}%2f%2e%2e%2f", "%2f{id}%2f..", "/..%2fconfigure-webhook", "/%2e%2e%2fconfigure-webhook",
		"/%", "/%2", "/%zz", "/%20", "/%09", "/%0a", "/%0d%0a", "/%c0%ae", "/%c0%af", "/{id}/%c0%ae%c0%ae", "/%ff",
	}},
	{"double escapes", advicePath, []string{
		"/%252e", "/%252f", "%252f", "/{id}/%252e%252e", "/{id}%252f..", "/{id}%252f%252e%252e", "/{id}/..%252f", "/%2500", "/%2520",
	}},
	{"semicolon", advicePath, []string{
		";", ";{id}", ";endpoint_id={id}", "/;", "/;{id}", "/;endpoint_id={id}", "/{id};/..", "/{id}/..;", "/{id}/..;/", "/..;/configure-webhook",
		"/.;{id}", "/%3b", "/%3b{id}", "%3b{id}",
	}},
	{"backslash", advicePath, []string{
		`\`, `/\`, `\/`, `/\\`, `/{id}\..`, `/{id}\..\`, `\{id}\..`, `/{id}/..\`, `/..\configure-webhook`, `/%5c`, `%5c`, `/{id}%5c..`, `/{id}%5c%2e%2e`, `/%255c`,
	}},
	{"fragment", advicePath, []string{"#", "#{id}", "/#", "/#{id}", "/##", "/#/{id}", "?#{id}", "/%23", "/%23{id}", "%23{id}"}},
	{"query", adviceQuery, []string{
		"?", "/?", "??", "?{id}", "/?{id}", "?/{id}", "?endpoint_id={id}", "/?endpoint_id={id}", "?moc_id={id}", "?endpoint_id=", "/%3f", "/%3f{id}", "%3f{id}",
	}},
	{"controls", advicePath, []string{
		"/\x00", "/\x00{id}", "\x00{id}", "/%00", "/%00{id}", "%00", "%00{id}", "/{id}/..%00", "/\t{id}", "/\x01", "/\x7f", "/ {id}",
	}},
}

// fewSuffixes are one or two of each class, for the other forms of a request.
var fewSuffixes = []string{
	"/.", "/{id}/..", "//", "/%2e", "/%2f", "/{id}%2f..", "/{id}/%2e%2e", "/%252f", ";{id}", "/;{id}", `/\`, `/{id}\..`, "#{id}", "/#{id}", "?", "/?endpoint_id={id}",
	"/%00", "/\x00{id}",
}

// maker builds the attempts of one base.
type maker struct {
	authority string
	base      string // escaped path
	entity    string
	made      []attempt
}

func attempts(w wire, entity string) []attempt {
	m := maker{authority: w.authority, base: w.base, entity: entity}
	for _, v := range []protocol{http11, http2} {
		m.addPaths(v)
		m.addBodies(v)
	}
	m.addPrefixes()
	m.addForms()
	m.addHeaders()
	m.addSets(http11) // after the others, since the state that they need is another one
	m.addSets(http2)
	return m.made
}

func (m *maker) add(a attempt, suffix string) {
	a.target += strings.ReplaceAll(suffix, "{id}", m.entity)
	a.body = strings.ReplaceAll(a.body, "{id}", m.entity)
	m.made = append(m.made, a)
}

// addPaths adds a DELETE of every suffix.
func (m *maker) addPaths(v protocol) {
	for _, group := range suffixes {
		for _, suffix := range group.suffixes {
			m.add(attempt{class: group.class, advice: group.advice, version: v, method: "DELETE", target: m.base + configure}, suffix)
		}
	}
	for _, suffix := range fewSuffixes {
		m.add(attempt{class: "variant", advice: advicePath, version: v, method: "DELETE", target: m.base + variant}, suffix)
	}
}

// addPrefixes adds a DELETE whose path is unclean, or in capital letters, before the
// resource too. Some routers clean only a path that none of their routes matches.
func (m *maker) addPrefixes() {
	path := m.base + configure
	first := 1 + strings.Index(path[1:], "/")
	for _, target := range []string{"/" + path, "/." + path, "/x/.." + path, strings.ToUpper(path[:first]) + path[first:]} {
		m.add(attempt{class: "prefix", advice: advicePath, version: http11, method: "DELETE", target: target}, "/{id}/..")
	}
}

// addForms adds other forms of a request line, and what resembles them: a URL in the rest of
// the target. HTTP/2 has only one form.
func (m *maker) addForms() {
	for _, separator := range []string{"?", "#", "/"} {
		m.add(attempt{
			class: "absolute form", advice: advicePath, version: http11, method: "DELETE", target: m.base + configure,
		}, "/{id}/.."+separator+"http://"+m.authority+m.base+configure)
	}
	for _, suffix := range fewSuffixes {
		m.add(attempt{
			class: "absolute form", advice: advicePath, version: http11, method: "DELETE",
			target: "http://" + m.authority + m.base + configure,
		}, suffix)
		m.add(attempt{class: "HTTP/1.0", advice: advicePath, version: http10, method: "DELETE", target: m.base + configure}, suffix)
	}
	m.add(attempt{
		class: "HTTP/1.0", advice: adviceBody, version: http10, method: "DELETE", target: m.base + configure,
		body: `{"endpoint_id":"{id}"}`,
	}, "")
}

// addBodies adds a DELETE whose body names the entity. HTTP/1.0 has no chunks: see the
// documentation of the handler.
func (m *maker) addBodies(v protocol) {
	for _, suffix := range []string{"", "/"} {
		for _, a := range []attempt{
			{body: `{"endpoint_id":"{id}"}`},
			{body: `{"endpoint_id":"{id}"}`, chunked: true},
			{body: `{"endpoint_id":"{id}"}`, fields: []string{"Expect: 100-continue"}},
			{body: `endpoint_id={id}`, fields: []string{"Content-Type: application/x-www-form-urlencoded"}},
		} {
			a.class, a.advice, a.version, a.method, a.target = "body", adviceBody, v, "DELETE", m.base+configure
			m.add(a, suffix)
		}
	}
}

const setAll = `{"webhook_url":"{url}"}`

// addHeaders adds a PUT that a field makes a DELETE, and a DELETE whose original target, as
// a proxy would pass it on, is that of all.
func (m *maker) addHeaders() {
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		m.add(attempt{
			class: "method", advice: adviceMethod, version: http11, method: "PUT", target: m.base + configure,
			fields: []string{name + ": DELETE"},
		}, "")
	}
	for _, name := range []string{"X-Original-URI", "X-Original-URL", "X-Forwarded-Uri"} {
		for _, suffix := range []string{"/{id}/..", "//", "#{id}", "?"} {
			m.add(attempt{
				class: "original target", advice: adviceOriginal, version: http11, method: "DELETE", target: m.base + configure,
				fields: []string{name + ": " + m.base + configure},
			}, suffix)
		}
	}
}

// addSets adds POST: at a path that names an entity, with a body that does not, and at the
// path of a set, with an identifier that is lost if the JSON is written again.
func (m *maker) addSets(v protocol) {
	post := attempt{class: "set", advice: advicePath, version: v, method: "POST", target: m.base + configure, body: setAll}
	for _, suffix := range append([]string{"/{id}", "/", "?endpoint_id={id}"}, fewSuffixes...) {
		m.add(post, suffix)
	}
	for _, body := range []string{
		`{"endpoint_id":null,"webhook_url":"{url}"}`,
		`{"endpoint_id":"","webhook_url":"{url}"}`,
		`{"endpoint_id":[],"webhook_url":"{url}"}`,
		`{"endpoint_id":"{id}","endpoint_id":null,"webhook_url":"{url}"}`,
		`{"endpointId":"{id}","webhook_url":"{url}"}`,
		`{"moc_id":"{id}","webhook_url":"{url}"}`,
	} {
		post.class, post.advice, post.body = "JSON", adviceJSON, body
		m.add(post, "")
	}
}
