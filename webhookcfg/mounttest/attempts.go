package mounttest

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// attempt is a request that should reach one entity, or nothing.
type attempt struct {
	class, advice  string
	form           form
	method, target string   // target in origin form
	fields         []string // of the header, beyond those of every request
	body           string   // "{url}" stands for the webhook URL
	chunked        bool
	framing        string // a malformed field, with {n} for the length of the body, in place of the correct one
	sets           bool   // it sets webhooks and doesn't unset them

	stranger      bool   // it isn't signed in as the client of the check
	authorization string // of a stranger; empty for none
	near          string // what reports show instead, if it's nearly the right one
}

// Paths of the interface.
const (
	configure = "/api/v1/configure/configure-webhook"
	variant   = "/api/v1/configuration/configure-webhook"
)

// length is how long the long attempts are. Names and many buffers should be shorter.
const length = 300

// lengths are a little more than the usual limits of proxies for a line or a buffer.
var lengths = []int{10 * length, 4100, 8200, 16400, 65600}

// suffixes follow the path of the resource. "{id}" stands for the entity, "{unknown}" for an
// entity that the host doesn't know, "{resource}" for the path of the resource. A part that
// cleans, decodes, cuts, trims or looks up the path can turn each of them into the path of
// all.
var suffixes = []struct {
	class, advice string
	suffixes      []string
}{
	{"dots", advicePath, []string{
		"/.", "/./", "/././", "/{id}/..", "/{id}/../", "/{id}/./..", "/{id}/x/../..", "/{id}/../.", "/../configure-webhook",
		"/../configure-webhook/", "/{id}/../../configure-webhook", "/..", "/../", "/...", "/....", "/.../",
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
	{"other escapes", advicePath, []string{
		"/%u002e", "/%u002f", "%u002f", "/{id}/%u002e%u002e", "/{id}%u002f..", "/{id}%u002f%u002e%u002e", "/%uff0e", "/%uff0f",
		"/{id}/%uff0e%uff0e", "/{id}%uff0f%uff0e%uff0e", "/%u0000", "/&#46;", "/&#47;", "/{id}/&#46;&#46;", "/{id}/&#x2e;&#x2e;", `/{id}/\x2e\x2e`,
	}},
	{"Unicode", advicePath, []string{
		"/．", "/{id}/．．", "／", "/／", "/{id}／．．", "/{id}／..", "/{id}/‥", "/․", "/{id}/․․", "/…", "/。", `/{id}＼..`, "；{id}", "？{id}", "＃{id}", "/％2f",
		"/%ef%bc%8e", "/{id}/%ef%bc%8e%ef%bc%8e", "%ef%bc%8f", "/%ef%bc%8f", "/{id}%ef%bc%8f%ef%bc%8e%ef%bc%8e", "/{id}%ef%bc%8f..", "/{id}/%e2%80%a5",
		"/%e2%80%a4", "/{id}/%e2%80%a4%e2%80%a4", "/%e2%80%a6", "/%e3%80%82", "/{id}%ef%bc%bc..", "%ef%bc%9b{id}", "%ef%bc%9f{id}", "%ef%bc%83{id}",
		"/%c2%a0", "/%c2%ad", "/%e2%80%8b", "/%e2%80%a8", "/%e3%80%80", "/%ef%bb%bf",
	}},
	{"semicolon", advicePath, []string{
		";", ";{id}", ";endpoint_id={id}", "/;", "/;{id}", "/;endpoint_id={id}", "/{id};/..", "/{id}/..;", "/{id}/..;/", "/..;/configure-webhook",
		"/.;{id}", "/%3b", "/%3b{id}", "%3b{id}",
	}},
	{"separators", advicePath, []string{
		",", ",{id}", "/,", "/{id},", "/,{id}", "/{id},,", "/{id},%20", "/%2c", "/{id}%2c", "/%2c{id}", "/|", "/{id}|", "/&", "/{id}&", "/&{id}", "/+", "/{id}+", "/!", "/$", "/'", "/*",
	}},
	{"names", advicePath, []string{
		":unset", "/:unset", "/:", "/{id}:", "/:endpoint_id", "/{endpoint_id}", "/%7bendpoint_id%7d", "/<endpoint_id>", "/()", "/[]", "/{}", "/null", "/undefined", "/none", "/nil",
		"/NaN", "/false", "/0", "/-", "/_", "/~", "/@", "/all", "/_all", "/default", "/base", `/""`, "/%22%22", "/{unknown}", "/{unknown}/{id}",
	}},
	{"nested", advicePath, []string{
		"/{id}{resource}", "/{id}{resource}/", "/{id}" + configure, "/{id}" + configure + "/", "/{id}" + variant, "{resource}", "/{id}/configure-webhook", "/{id}/configure-webhook/",
	}},
	{"formats", advicePath, []string{
		".json", "/.json", ".xml", "/.xml", ".html", "/.html", ".php", "/.php", ".do", "/.gz", "/{id}/.json", "/index", "/index.html", "/index.htm", "/index.json", "/index.php",
		"/default.aspx", "/{id}/../index.html", "/edit", "/delete", "/new", "/index.php/{id}", "~", "/.well-known", "/favicon.ico",
	}},
	{"languages", advicePath, []string{"/en", "/en/", "/de-DE", "/de_DE", "/v1", "/v1/", "/1", "/mobile", "/print", "/amp", "/feed", "/latest", "@latest", "/@1"}},
	{"sessions", advicePath, []string{
		";jsessionid=1", "/;jsessionid=1", ";sid=1", ",sid=1", "/(S(1))", "/(S(1))/", "/S(1)", "/sid-1", "/SID=1", "/PHPSESSID=1", "/_s1", "!1", "/!1",
	}},
	{"wildcards", advicePath, []string{"*", "/**", "%2a", "/%2a", "/{id}*", "/{id}/*", "/[0-9]", "/{a,b}", "/.*", "/%25", "/_%25"}},
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
	{"long", advicePath, []string{
		"/" + strings.Repeat("a", length), "/" + strings.Repeat("a", length) + "/{id}", strings.Repeat("/", length) + "{id}", strings.Repeat("/.", length/2) + "/{id}",
		"/" + strings.Repeat("%20", length/3) + "{id}", "/;" + strings.Repeat("a", length) + "/{id}", "?" + strings.Repeat("a", length) + "&endpoint_id={id}",
		"/{id}/" + strings.Repeat("a", length) + "/../..", "/" + strings.Repeat("%61", length),
	}},
}

// fewSuffixes are one or two of each class. The other forms of a request need no more.
var fewSuffixes = []string{
	"/.", "/...", "/{id}/..", "//", "/%2e", "/%2f", "/{id}%2f..", "/{id}/%2e%2e", "/%252f", "/{id}%u002f..", "/{id}／..", "/{id}/%ef%bc%8e%ef%bc%8e", ";{id}", "/;{id}", "/{id},", "/:unset", "/{unknown}",
	"/.json", "/index.html", "/en", ";jsessionid=1", "/(S(1))", "/**", "/{id}{resource}", `/\`, `/{id}\..`, "#{id}", "/#{id}", "?", "/?endpoint_id={id}", "/%00", "/\x00{id}", "/" + strings.Repeat("a", length),
}

// names are valid identifiers that a POST of the check can set, in addition to the target's
// two. Other parsers read them as nothing.
var names = []string{"null", "undefined", "none", "nil", "false", "0"}

// maker builds the attempts of one base.
type maker struct {
	authority string
	base      string // escaped path
	client    string
	secret    string
	entity    string
	witness   string
	unknown   string
	values    map[string]string // of the names in braces, in suffixes and bodies
	made      []attempt
}

// attempts returns the attempts of a check. Those that unset webhooks come first, and the
// attempts of a form stay together.
func attempts(w wire, t Target, unknown string) []attempt {
	m := maker{authority: w.authority, base: w.base, client: t.ClientID, secret: t.Secret, entity: t.Entity, witness: t.Witness, unknown: unknown}
	m.values = map[string]string{"id": m.entity, "unknown": m.unknown, "resource": m.base + configure}
	for _, f := range forms {
		m.addPaths(f)
		m.addBodies(f)
	}
	m.addPrefixes()
	m.addTargets()
	m.addMethods()
	for _, f := range forms {
		m.addFields(f)
		m.addSets(f)
		m.addJSON(f)
		m.addStrangers(f)
	}
	slices.SortStableFunc(m.made, func(a, b attempt) int {
		if a.sets != b.sets {
			return map[bool]int{false: -1, true: 1}[a.sets]
		}
		return cmp.Compare(slices.Index(forms, a.form), slices.Index(forms, b.form))
	})
	return m.made
}

func (m *maker) add(a attempt, suffix string) {
	a.target += m.fill(suffix)
	a.body = m.fill(a.body)
	m.made = append(m.made, a)
}

// fill replaces the names in braces that have a value. A [strings.Replacer] looks up every byte,
// and some texts are long.
func (m *maker) fill(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		if value, ok := m.values[name]; ok {
			b.WriteString(value)
			text = after
		} else {
			b.WriteByte('{')
			text = rest
		}
	}
}

// addPaths adds a DELETE of every suffix, or of a few.
func (m *maker) addPaths(f form) {
	a := attempt{class: string(f), advice: advicePath, form: f, method: "DELETE", target: m.base + configure}
	if f.isFull() {
		for _, group := range suffixes {
			a.class, a.advice = group.class, group.advice
			for _, suffix := range group.suffixes {
				m.add(a, suffix)
			}
		}
		a.class, a.advice = "long", advicePath
		for _, n := range lengths {
			long := strings.Repeat("a", n)
			for _, suffix := range []string{"/" + long, "/" + long + "/{id}", "/{id}/" + long + "/../..", "?" + long + "&endpoint_id={id}"} {
				m.add(a, suffix)
			}
		}
		a.class, a.advice, a.target = "variant", advicePath, m.base+variant
	}
	for _, suffix := range fewSuffixes {
		m.add(a, suffix)
	}
}

// addBodies adds a DELETE whose body names the entity. HTTP/1.0 has no chunks, as the
// handler's documentation says.
func (m *maker) addBodies(f form) {
	for _, suffix := range []string{"", "/"} {
		for _, a := range []attempt{
			{body: `{"endpoint_id":"{id}"}`},
			{body: `{"endpoint_id":"{id}"}`, chunked: true},
			{body: `{"endpoint_id":"{id}"}`, fields: []string{"Expect: 100-continue"}},
			{body: `endpoint_id={id}`, fields: []string{formEncoded}},
			{body: strings.Repeat(" ", length) + `{"endpoint_id":"{id}"}`},
		} {
			if f == http10 && (a.chunked || a.fields != nil) {
				continue
			}
			a.class, a.advice, a.form, a.method, a.target = "body", adviceBody, f, "DELETE", m.base+configure
			m.add(a, suffix)
		}
	}
	if f.isFull() {
		for _, field := range bodyFields {
			m.add(attempt{class: "body", advice: adviceBody, form: f, method: "DELETE", target: m.base + configure, body: `{"endpoint_id":"{id}"}`, fields: []string{field}}, "")
		}
	}
	if f == http11 {
		for _, framing := range []string{
			"Content-Length : {n}", "Content-Length\t: {n}", "Content-Length: +{n}", "Content-Length: {n},{n}", "Content-Length: 0x{n}", "Transfer-Encoding : chunked", "Transfer-Encoding: \vchunked",
		} {
			m.add(attempt{
				class: "body", advice: adviceBody, form: f, method: "DELETE", target: m.base + configure,
				body: `{"endpoint_id":"{id}"}`, chunked: strings.Contains(framing, "chunked"), framing: framing,
			}, "")
		}
	}
	if !f.isFull() {
		return
	}
	for _, n := range lengths {
		m.add(attempt{
			class: "body", advice: adviceBody, form: f, method: "DELETE", target: m.base + configure,
			body: strings.Repeat(" ", n) + `{"endpoint_id":"{id}"}`,
		}, "")
	}
}

// bodyFields are reasons to drop, decode or reject a body.
var bodyFields = []string{
	"Content-Encoding: gzip", "Content-Encoding: deflate", "Content-Encoding: br", "Content-Encoding: identity", "Content-Encoding: unknown",
	"Content-Type: text/plain", "Content-Type: application/json; charset=utf-16", "Content-Type: application/octet-stream", "Content-Type: multipart/form-data; boundary=x", "Content-Type: unknown",
	"Content-Range: bytes 0-1/2", "Content-MD5: x", "Upgrade: h2c", "If-None-Match: *",
	"X-Padding: " + strings.Repeat("a", 3000), "X-Padding: " + strings.Repeat("a", 6000),
}

const formEncoded = "Content-Type: application/x-www-form-urlencoded"

// addPrefixes adds a DELETE whose path is also unclean, or in capital letters, before the
// resource. Some routers clean only paths that match none of their routes.
func (m *maker) addPrefixes() {
	path := m.base + configure
	first := 1 + strings.Index(path[1:], "/")
	for _, target := range []string{"/" + path, "/." + path, "/x/.." + path, strings.ToUpper(path[:first]) + path[first:]} {
		m.add(attempt{class: "prefix", advice: advicePath, form: http11, method: "DELETE", target: target}, "/{id}/..")
	}
}

// addTargets adds targets that resemble the absolute form, with a URL in their rest.
func (m *maker) addTargets() {
	for _, separator := range []string{"?", "#", "/"} {
		m.add(attempt{
			class: "absolute form", advice: advicePath, form: http11, method: "DELETE", target: m.base + configure,
		}, "/{id}/.."+separator+"http://"+m.authority+m.base+configure)
	}
}

// addMethods adds requests that a field, a query or a body turns into a DELETE, and ones with
// methods that the handler doesn't know, but that somebody may turn into one that it knows.
func (m *maker) addMethods() {
	a := attempt{class: "method", advice: adviceMethod, form: http11, target: m.base + configure}
	for _, name := range []string{
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Method", "X-Original-Method", "X-Forwarded-Method", "X-Request-Method", "X-Rewrite-Method", "_method",
	} {
		a.fields = []string{name + ": DELETE"}
		for _, a.method = range []string{"PUT", "GET", "POST"} {
			a.body = ""
			if a.method == "POST" {
				a.body = `{"endpoint_id":"{id}","webhook_url":"{url}"}`
			}
			m.add(a, "")
		}
	}
	a.fields, a.method, a.body = nil, "POST", `{"endpoint_id":"{id}","webhook_url":"{url}"}`
	for _, query := range []string{"?_method=DELETE", "?_method=delete", "?method=DELETE", "?__method=DELETE", "?$method=DELETE", "?X-HTTP-Method-Override=DELETE"} {
		m.add(a, query)
	}
	a.body = `{"_method":"DELETE","endpoint_id":"{id}","webhook_url":"{url}"}`
	m.add(a, "")
	a.fields, a.body = []string{formEncoded}, "_method=DELETE&endpoint_id={id}"
	m.add(a, "")

	a.fields, a.body = nil, ""
	for _, a.method = range []string{"PURGE", "BAN", "REMOVE", "UNLINK"} {
		m.add(a, "/{id}")
	}
	for _, a.method = range []string{"PUT", "PATCH"} {
		a.sets = false
		a.body = `{"webhook_url":null}`
		m.add(a, "/{id}")
		a.body = `{"endpoint_id":"{id}","webhook_url":null}`
		m.add(a, "")
		m.add(a, "/")
		a.sets = true
		a.body = setAll
		m.add(a, "/{id}")
		m.add(a, "?endpoint_id={id}")
		a.body = `{"endpoint_id":"{id}","webhook_url":"{url}"}`
		m.add(a, "")
		m.add(a, "/{id}")
	}
}

// addFields adds a DELETE that is malformed or names the entity, with a field that says that
// the target is the path of all.
func (m *maker) addFields(f form) {
	if !f.isFull() {
		return
	}
	a := attempt{class: "original target", advice: adviceOriginal, form: f, method: "DELETE", target: m.base + configure}
	for _, name := range []string{
		"X-Original-URI", "X-Original-URL", "X-Forwarded-Uri", "X-Rewrite-URL", "X-Rewrite-URI", "X-Request-URI", "X-Forwarded-Path", "X-Original-Path", "X-Envoy-Original-Path",
		"X-Replaced-Path", "X-Override-URL", "X-Forwarded-Url",
	} {
		a.fields = []string{name + ": " + m.base + configure}
		for _, suffix := range []string{"/{id}", "/{id}/..", "//", "#{id}", "?"} {
			m.add(a, suffix)
		}
		a.fields = []string{name + ": " + configure} // for a proxy that strips the base
		m.add(a, "/{id}")
	}
}

const setAll = `{"webhook_url":"{url}"}`

// addSets adds a POST whose path names an entity, but its body doesn't.
func (m *maker) addSets(f form) {
	a := attempt{class: "set", advice: advicePath, form: f, method: "POST", target: m.base + configure, body: setAll, sets: true}
	if f.isFull() {
		for _, suffix := range append([]string{"/{id}", "/", "?endpoint_id={id}"}, fewSuffixes...) {
			m.add(a, suffix)
		}
		return
	}
	for _, suffix := range []string{"/{id}", "/", "/{id}/..", "?endpoint_id={id}"} {
		m.add(a, suffix)
	}
}

// addJSON adds a POST with an identifier that gets lost if somebody rewrites the body.
func (m *maker) addJSON(f form) {
	a := attempt{class: "JSON", advice: adviceJSON, form: f, method: "POST", target: m.base + configure, sets: true}
	for _, a.body = range []string{
		`{"endpoint_id":null,"webhook_url":"{url}"}`,
		`{"endpoint_id":"","webhook_url":"{url}"}`,
		`{"endpoint_id":" ","webhook_url":"{url}"}`,
		`{"endpoint_id":"\t","webhook_url":"{url}"}`,
		`{"endpoint_id":"\u0000","webhook_url":"{url}"}`,
		`{"endpoint_id":"\u00a0","webhook_url":"{url}"}`,
		`{"endpoint_id":"\u3000","webhook_url":"{url}"}`,
		`{"endpoint_id":"\u200b","webhook_url":"{url}"}`,
		`{"endpoint_id":"\ufeff","webhook_url":"{url}"}`,
		`{"endpoint_id":"\u2028","webhook_url":"{url}"}`,
		`{"endpoint_id":"%00","webhook_url":"{url}"}`,
		`{"endpoint_id":"%20","webhook_url":"{url}"}`,
		`{"endpoint_id":"&nbsp;","webhook_url":"{url}"}`,
		`{"endpoint_id":NaN,"webhook_url":"{url}"}`,
		`{"endpoint_id":undefined,"webhook_url":"{url}"}`,
		`{"endpoint_id":'{id}',"webhook_url":"{url}"}`,
		`{"endpoint_id":-0,"webhook_url":"{url}"}`,
		`{"endpoint_id":[null],"webhook_url":"{url}"}`,
		`{"webhook_url":"{url}"/*,"endpoint_id":"{id}"*/}`,
		`{"webhook_url":"{url}"} // "endpoint_id":"{id}"`,
		`{"endpoint_id":"*","webhook_url":"{url}"}`,
		`{"endpoint_id":"/","webhook_url":"{url}"}`,
		`{"endpoint_id":"..","webhook_url":"{url}"}`,
		`{"endpoint_id":"{id},","webhook_url":"{url}"}`,
		`{"endpoint_id":"` + strings.Repeat("a", length) + `","webhook_url":"{url}"}`,
		`{"endpoint_id":[],"webhook_url":"{url}"}`,
		`{"endpoint_id":["{id}"],"webhook_url":"{url}"}`,
		`{"endpoint_id":{},"webhook_url":"{url}"}`,
		`{"endpoint_id":false,"webhook_url":"{url}"}`,
		`{"endpoint_id":0,"webhook_url":"{url}"}`,
		`{"endpoint_id":"{id}","endpoint_id":null,"webhook_url":"{url}"}`,
		`{"endpoint_id":"{id}","endpoint_id":"","webhook_url":"{url}"}`,
		`{"endpointId":"{id}","webhook_url":"{url}"}`,
		`{"Endpoint_ID":"{id}","webhook_url":"{url}"}`,
		`{"endpoint_id ":"{id}","webhook_url":"{url}"}`,
		`{"endpoint-id":"{id}","webhook_url":"{url}"}`,
		`{"id":"{id}","webhook_url":"{url}"}`,
		`{"moc_id":"{id}","webhook_url":"{url}"}`,
		`[{"endpoint_id":"{id}","webhook_url":"{url}"}]`,
		`{"webhook_url":"{url}"}{"endpoint_id":"{id}","webhook_url":"{url}"}`,
		`{"webhook_url":"{url}",}` + "\n" + `"endpoint_id":"{id}"`,
	} {
		m.add(a, "")
	}
	a.fields = []string{formEncoded}
	for _, a.body = range []string{
		"endpoint_id={id}&webhook_url={escaped}", "endpoint_id=&webhook_url={escaped}", "endpoint_id=%20&webhook_url={escaped}", "moc_id={id}&webhook_url={escaped}", "webhook_url={escaped}&endpoint_id={id}",
	} {
		m.add(a, "")
	}
	if !f.isFull() {
		return
	}
	// A mount can carry these out, each after a probe, so there are few.
	a.fields = nil
	a.body = `{"endpoint_id":"{unknown}","webhook_url":"{url}"}`
	m.add(a, "")
	for _, n := range append([]int{length}, lengths...) {
		a.body = `{"webhook_url":"{url}",` + strings.Repeat(" ", n) + `"endpoint_id":"{id}"}`
		m.add(a, "")
	}
	for _, name := range names {
		a.body = `{"endpoint_id":"` + name + `","webhook_url":"{url}"}`
		m.add(a, "")
	}
}

// otherCase returns a text with its ASCII letters in the other case.
func otherCase(text string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c ^ ' '
		}
		return c
	}, text)
}

// addStrangers adds correct requests for the witness by somebody who isn't its client. A part
// that adds credentials, or remembers them from an earlier request, carries them out. There
// are few with the client's id and a wrong secret, since a throttle counts these.
func (m *maker) addStrangers(f form) {
	basic := func(id, secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	}
	const wrong = "not-the-secret-of-the-check"
	a := attempt{class: "credentials", advice: adviceCredentials, form: f, method: "DELETE", target: m.base + configure + "/" + m.witness, stranger: true}
	read, set := a, a
	read.method = "GET"
	set.method, set.target, set.body, set.sets = "POST", m.base+configure, `{"endpoint_id":"`+m.witness+`","webhook_url":"{url}"}`, true

	for _, a := range []attempt{a, read, set} {
		m.add(a, "")
	}
	if f == http11 || f == http2 || f == keptAlive {
		a.authorization = basic(m.client, wrong)
		m.add(a, "")
	}
	if f != http11 {
		return
	}
	// Somebody who compares secrets loosely, and then adds the right one.
	near := func(a attempt, secret, how string) {
		if secret == m.secret || secret == "" {
			secret, how = wrong, ""
		}
		a.authorization, a.near = basic(m.client, secret), how
		m.add(a, "")
	}
	near(read, strings.TrimRight(m.secret, m.secret[len(m.secret)-1:]), "Basic, with the secret without its end")
	near(set, otherCase(m.secret), "Basic, with the secret in the other letter case")
	for _, a.authorization = range []string{
		basic(m.client+"-unknown", wrong), basic(m.client, ""), basic("", wrong), basic("", ""), "Basic", "Bearer " + wrong, "Negotiate " + wrong, `Digest username="` + m.client + `"`,
	} {
		m.add(a, "")
	}
	a.authorization = ""
	for _, name := range []string{
		"X-Forwarded-User", "X-Remote-User", "Remote-User", "X-Authenticated-User", "X-Auth-Request-User", "X-User", "X-Client-Id", "X-Consumer-Username", "X-Credential-Identifier",
		"X-Forwarded-Preferred-Username", "X-WEBAUTH-USER",
	} {
		a.fields = []string{name + ": " + m.client}
		m.add(a, "")
	}
	a.fields = []string{"X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1"}
	m.add(a, "")
}
