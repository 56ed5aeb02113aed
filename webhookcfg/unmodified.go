package webhookcfg

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ruleEscaping refuses a path that isn't percent-encoded properly. For such a path,
// URL.EscapedPath doesn't return the path as it was sent. It encodes the decoded path, where
// "%2f" is a slash.
const ruleEscaping = "The path must be percent-encoded as RFC 3986 specifies"

func checkEscaping(u *url.URL) *apiError {
	if u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return invalidRequest(ruleEscaping)
	}
	return nil
}

// isUnmodified reports whether the request target, as the server received it, ends in the
// path that we serve. It doesn't if a mux or a middleware cleaned the path, and turned
// "…/e1/.." into the path that means all entities.
//
// The target must also be in origin form or, over HTTP/1, in absolute form, since net/http
// would serve "http:/…" as well.
func (rt routes) isUnmodified(r *http.Request, escaped string) bool {
	if r.RequestURI == "" {
		return true // no server received this request, as in a test
	}
	target, _, _ := strings.Cut(r.RequestURI, "?")
	base, found := strings.CutSuffix(target, escaped)
	return found && (target[0] == '/' || r.ProtoMajor == 1 && r.URL.Host != "") && !rt.isNested(base)
}

// isTarget reports whether the request target that a proxy received asks for the same
// operation as m on all entities, and needs no cleaning. It can be in origin form or in
// absolute form (RFC 9112 §3.2). The proxy can serve the resource under another base path.
func (rt routes) isTarget(m match, target string, allowed AllScope) bool {
	if scheme, rest, found := strings.Cut(target, "://"); found && !strings.ContainsAny(scheme, "/?#") {
		target = rest[max(strings.IndexAny(rest, `/?#\`), 0):]
	}
	served := strings.TrimPrefix(m.resource.root, m.resource.basePath)
	if m.action.operation == opSet {
		if m.action.form == formSlash {
			served += "/"
		}
	} else if allowed == AllScopeAsSpecified {
		target = strings.TrimSuffix(target, "/")
	}
	base, found := strings.CutSuffix(target, served)
	return found && plainPath(strings.TrimSuffix(target, "/")) && !rt.isNested(base)
}

// isNested reports whether the path before a resource contains a resource itself. A router or
// a proxy with a greedy prefix pattern would cut such a path, "…/e1" with the path of the
// resource once more, to the one that means all entities.
func (rt routes) isNested(base string) bool {
	if base == "" {
		return false
	}
	decoded, err := url.PathUnescape(base)
	return err != nil || slices.ContainsFunc(rt, func(rs resource) bool {
		return strings.Contains(decoded+"/", strings.TrimPrefix(rs.root, rs.basePath)+"/")
	})
}

// TargetFromHeader returns a function for [Options.OriginalTarget]. It reads the original
// target from a header field that your outermost proxy writes, such as "X-Original-URI".
//
// Make sure that the proxy replaces the field if a client sends it. If a request doesn't have
// exactly one such field, it can't reach all entities.
func TargetFromHeader(name string) func(r *http.Request) string {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) string {
		if fields := r.Header[name]; len(fields) == 1 {
			return fields[0]
		}
		return ""
	}
}
