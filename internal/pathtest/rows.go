package pathtest

import (
	"cmp"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

const configure = "/api/v1/configure/configure-webhook"

// Row is a request target and its effects.
type Row struct {
	// Target is the request target of a DELETE, byte for byte.
	Target string
	// Direct, Before and Registered are its effects, as [Service.Delete] returns them: on the
	// handler by itself, under Before, and on a mux with just Register, which redirects.
	Direct, Before, Registered string
}

// Rows returns the table for a handler that you reach at a base path.
func Rows(base string, scope webhookcfg.AllScope) []Row {
	b := base + configure
	rows := []Row{
		{Target: b, Direct: "all"},
		{Target: b + "/", Direct: "all"},
		{Target: "http://test" + b + "/", Direct: "all"},
		{Target: "http:" + b, Direct: "400"},
		{Target: b + "/x", Direct: "entity x"},
		{Target: b + "/a.b_c~d:e@f-g", Direct: "entity a.b_c~d:e@f-g"},
		{Target: b + "/%78", Direct: "entity x"},
		{Target: b + "/...", Direct: "entity ..."},
		{Target: b + "/" + strings.Repeat("x", 128), Direct: "entity " + strings.Repeat("x", 128)},
		{Target: b + "/x?y=z", Direct: "entity x"},

		{Target: b + "//", Direct: "404", Registered: "307 " + b + "/"},
		{Target: b + "///", Direct: "404", Registered: "307 " + b + "/"},
		{Target: b + "//x", Direct: "404", Registered: "307 " + b + "/x"},
		{Target: b + "/x/", Direct: "404"},
		{Target: b + "/x//", Direct: "404", Registered: "307 " + b + "/x/"},
		{Target: b + "/x/y", Direct: "404"},
		{Target: b + "/.", Direct: "400", Registered: "307 " + b},
		{Target: b + "/./", Direct: "404", Registered: "307 " + b + "/"},
		{Target: b + "/..", Direct: "400", Registered: "307 " + base + "/api/v1/configure"},
		{Target: b + "/x/..", Direct: "404", Registered: "307 " + b},
		{Target: b + "/x/../", Direct: "404", Registered: "307 " + b + "/"},
		{Target: b + "/../configure-webhook/", Direct: "404", Registered: "307 " + b + "/"},
		{Target: base + "/api/v1//configure/configure-webhook/x", Direct: "404", Registered: "307 " + b + "/x"},
		{Target: base + "/api/v1/configure/./configure-webhook", Direct: "404", Registered: "307 " + b},
		{Target: base + "/api/v1/configure/x/../configure-webhook", Direct: "404", Registered: "307 " + b},
		{Target: base + "/" + configure, Direct: "404", Registered: "307 " + b},
		{Target: "/" + b, Direct: "404", Registered: "307 " + b},
		{Target: "/./" + b, Direct: "404", Registered: "307 " + b},
		{Target: base + "/a%2fb/.." + configure, Direct: "404", Registered: "307 " + b},
		{Target: "/a%2fb/.." + b, Direct: "404", Registered: "307 " + b},
		{Target: base + "/api/v1/a%2fb/../configure/configure-webhook/", Direct: "404", Registered: "307 " + b + "/"},

		{Target: b + "/%2e", Direct: "400"},
		{Target: b + "/%2e%2e", Direct: "400"},
		{Target: b + "/x/%2e%2e", Direct: "404"},
		{Target: b + "/x%2f..", Direct: "400"},
		{Target: b + "/%2f", Direct: "400"},
		{Target: b + "/%2F", Direct: "400"},
		{Target: b + "/%2Fx", Direct: "400"},
		{Target: b + "/%252f", Direct: "400"},
		{Target: b + "/%00", Direct: "400"},
		{Target: b + "/%20", Direct: "400"},
		{Target: b + "/%ff", Direct: "400"},
		{Target: b + "/%C3%A9", Direct: "400"},
		{Target: b + "/\u00e9", Direct: "400"},
		{Target: b + "/x%0a", Direct: "400"},
		{Target: b + "/#x", Direct: "400"},
		{Target: b + "/x;y", Direct: "400"},
		{Target: b + "/" + strings.Repeat("x", 129), Direct: "400"},
		{Target: b + "/%zz", Direct: "400"},
		{Target: b + "/x y", Direct: "400"},

		{Target: b + "?endpoint_id=x", Direct: "400"},
		{Target: b + "/?endpoint_id=x", Direct: "400"},
		{Target: b + "?", Direct: "400"},
		{Target: b + "/?", Direct: "400"},

		{Target: base + "/api/v1/configure/configure%2dwebhook/", Direct: "404"},
		{Target: base + "/api/v1/configure/configure%2dwebhook/x", Direct: "404"},
		{Target: base + "/api/v1/configure%2fconfigure-webhook", Direct: "404"},
		{Target: base + "/API/v1/configure/configure-webhook", Direct: "404"},
		{Target: b + "x", Direct: "404"},
		{Target: base + "/api/v1/configure", Direct: "404"},
		{Target: base + "/", Direct: "404"},
		{Target: "*", Direct: "404", Before: "400", Registered: "400"},
	}
	for i := range rows {
		rows[i].limit(b, scope)
	}
	return rows
}

// limit changes a row to the effects of another AllScope. The row has those of
// AllScopeAsSpecified.
func (r *Row) limit(resource string, scope webhookcfg.AllScope) {
	path, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.Target, "http:"), "//test"), "?")
	switch {
	case scope == webhookcfg.AllScopeRefused && strings.TrimSuffix(path, "/") == resource:
		r.Direct = "403" // the handler doesn't look at the query before this
	case scope == webhookcfg.AllScopeExact && r.Direct == "all" && strings.HasSuffix(path, "/"):
		r.Direct = "400"
	}
	r.Before, r.Registered = cmp.Or(r.Before, r.Direct), cmp.Or(r.Registered, r.Direct)
}
