package webhookcfg

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// The paths of the interface, below the base path.
const (
	configurePath = "/api/v1/configure/configure-webhook"
	variantPath   = "/api/v1/configuration/configure-webhook"
)

// The names of the identifier, in the first path and in the variant.
const (
	endpointID = "endpoint_id"
	mocID      = "moc_id"
)

// resource is a path that leads to the webhooks: one of the two, or an alias. It never
// changes.
type resource struct {
	basePath string // which root starts with
	root     string // the escaped path, without a trailing slash
	idKey    string
	actions  []action
	// unserved has the reason why a form isn't served to GET, if the host can change that.
	unserved [formOther]error
}

// action is the operation of a method, at one form of a resource's path.
type action struct {
	method    string
	operation string
	pattern   string // for http.ServeMux, with the method
	form      form
}

// form says how a path goes on after the root of a resource.
type form uint8

const (
	formExact  form = iota // nothing
	formSlash              // exactly "/"
	formEntity             // one segment
	formOther              // anything else, which the handler doesn't serve
)

// cut splits an escaped path after the root of the resource.
func (rs resource) cut(escaped string) (f form, segment string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, rs.root)
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return 0, "", false
	case rest == "":
		return formExact, "", true
	case rest == "/":
		return formSlash, "", true
	case strings.IndexByte(rest[1:], '/') >= 0:
		return formOther, "", true
	default:
		return formEntity, rest[1:], true
	}
}

// routes are the resources of a handler.
type routes []resource

func newRoutes(o *Options, lists bool) routes {
	rt := routes{newResource(o, configurePath, endpointID, lists), newResource(o, variantPath, mocID, lists)}
	for _, alias := range o.VariantAliases {
		rt = append(rt, newResource(o, alias, mocID, lists))
	}
	return rt
}

func newResource(o *Options, path, idKey string, lists bool) resource {
	root, slash := strings.CutSuffix(path, "/")
	rs := resource{basePath: o.BasePath, root: o.BasePath + root, idKey: idKey}
	if slash {
		rs.add(http.MethodPost, formSlash, opSet)
	} else {
		rs.add(http.MethodPost, formExact, opSet)
	}
	for _, f := range []form{formExact, formSlash, formEntity} {
		rs.add(http.MethodDelete, f, opUnset)
	}
	if !o.Reads {
		rs.unserved[formEntity], rs.unserved[formExact] = errReadsOff, errReadsOff
		return rs
	}
	rs.add(http.MethodGet, formEntity, opRead)
	if !lists {
		rs.unserved[formExact] = errNoLister
		return rs
	}
	rs.add(http.MethodGet, formExact, opList)
	return rs
}

var (
	errReadsOff = errors.New("to serve GET, set Options.Reads")
	errNoLister = errors.New("to serve lists, the store has to be a Lister")
)

func (rs *resource) add(method string, f form, operation string) {
	path := rs.root
	switch f {
	case formSlash:
		path += "/{$}"
	case formEntity:
		path += "/{" + rs.idKey + "}"
	}
	rs.actions = append(rs.actions, action{method, operation, method + " " + path, f})
}

// match is the action that a request asks for, and the path that it matched.
type match struct {
	resource *resource
	action   *action
	escaped  string // the path
	segment  string // the identifier, still escaped, in formEntity
}

// match finds the action for a path exactly as it was sent: not cleaned, redirected or
// decoded.
func (rt routes) match(method, escaped string) (match, *apiError) {
	for i := range rt {
		rs := &rt[i]
		f, segment, ok := rs.cut(escaped)
		if !ok {
			continue
		}
		if f == formOther {
			break
		}
		for j := range rs.actions {
			if a := &rs.actions[j]; a.form == f && a.method == method {
				return match{rs, a, escaped, segment}, nil
			}
		}
		return match{}, rs.methodNotAllowed(method, f)
	}
	return match{}, &apiError{code: codeNotFound, description: "There is nothing at this path"}
}

func (rs *resource) methodNotAllowed(method string, f form) *apiError {
	e := &apiError{code: codeMethodNotAllowed, description: "The method is not allowed at this path"}
	switch {
	case method == http.MethodGet:
		e.cause = rs.unserved[f]
	case method == http.MethodPost && f == formEntity:
		e.description += "; a POST has the id in its body, as " + rs.idKey
	}
	var allowed []string
	for _, a := range rs.actions {
		if a.form == f {
			allowed = append(allowed, a.method)
		}
	}
	slices.Sort(allowed)
	e.allow = strings.Join(allowed, ", ")
	return e
}

// owns reports whether the handler serves the path, or would serve it after a mux cleaned it.
func (rt routes) owns(u *url.URL) bool {
	escaped := u.EscapedPath()
	return rt.contains(escaped) || rt.resembles(escaped) || rt.resembles(u.Path)
}

func (rt routes) contains(escaped string) bool {
	return slices.ContainsFunc(rt, func(rs resource) bool {
		_, _, ok := rs.cut(escaped)
		return ok
	})
}

// resembles reports whether any router would clean p to a path of the handler. Some routers
// clean the escaped path, like http.ServeMux, and some the unescaped one. Some ignore letter
// case, and some treat a backslash as a slash.
func (rt routes) resembles(p string) bool {
	cleaned := strings.ToLower(path.Clean(strings.ReplaceAll(p, `\`, "/")))
	return slices.ContainsFunc(rt, func(rs resource) bool {
		rest, ok := strings.CutPrefix(cleaned, strings.ToLower(rs.root))
		return ok && (rest == "" || rest[0] == '/')
	})
}
