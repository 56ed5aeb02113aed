package mounts

import (
	"fmt"
	"net/http"
	"strings"
)

// request is a line of the table that we send to every mount.
type request struct {
	method, target, body string

	// want is the outcome with the handler alone: the change that reached the store, or the
	// status and the error code.
	want string
}

const (
	setAll = `{"webhook_url":"` + hookURL + `"}`
	setOne = `{"endpoint_id":"e1","webhook_url":"` + hookURL + `"}`
	setMoc = `{"moc_id":"e1","webhook_url":"` + hookURL + `"}`
)

const (
	badRequest = "400 invalid_request"
	notFound   = "404 not_found"
	notAllowed = "405 method_not_allowed"
)

var requests = []request{
	// Valid requests.
	{"POST", configure, setAll, "set all"},
	{"POST", configure, setOne, "set entity e1"},
	{"POST", variant, setMoc, "set entity e1"},
	{"POST", alias, setMoc, "set entity e1"},
	{"DELETE", configure, "", "unset all"},
	{"DELETE", configure + "/", "", "unset all"},
	{"DELETE", variant + "/", "", "unset all"},
	{"DELETE", "http://test" + configure + "/", "", "unset all"},
	{"DELETE", configure + "/e1", "", "unset entity e1"},
	{"DELETE", variant + "/e1", "", "unset entity e1"},
	{"DELETE", alias + "e1", "", "unset entity e1"},
	{"DELETE", configure + "/%65%31", "", "unset entity e1"},
	{"DELETE", configure + "/e1?x=y", "", "unset entity e1"},
	{"GET", configure + "/e1", "", "200"},
	{"GET", configure, "", "200"},

	// Paths that a router may clean, so that they mean all entities. Package mounttest sends
	// many more that follow the path of the resource.
	{"DELETE", configure + "//", "", notFound},
	{"DELETE", configure + "/e1/..", "", notFound},
	{"DELETE", configure + "/%2f", "", badRequest},
	{"DELETE", configure + "/%zz", "", "400 text"},
	{"DELETE", alias + "/", "", notFound},
	{"DELETE", alias + "e1/..", "", notFound},
	{"DELETE", "/" + configure, "", notFound},
	{"DELETE", "/./" + configure[1:], "", notFound},
	{"DELETE", "/x/.." + configure, "", notFound},
	{"DELETE", base + "/" + configure[len(base):], "", notFound},
	{"DELETE", base + "/x/.." + configure[len(base):], "", notFound},
	{"DELETE", base + "/%2e%2e" + configure, "", notFound},
	{"DELETE", "/a%2fb/.." + configure, "", notFound},
	{"DELETE", base + "/a%2fb/.." + configure[len(base):], "", notFound},
	{"DELETE", "/HOOKS" + configure[len(base):], "", notFound},
	{"DELETE", "/HOOKS" + configure[len(base):] + "/e1/..", "", notFound},
	{"DELETE", base + "/API" + configure[len(base+"/api"):], "", notFound},
	{"DELETE", "/hook%73" + configure[len(base):], "", notFound},
	{"POST", "/" + configure, setAll, notFound},
	{"POST", strings.TrimSuffix(alias, "/"), setMoc, notAllowed},

	// Methods and paths that the handler doesn't serve.
	{"PUT", configure, setAll, notAllowed},
	{"PATCH", configure + "/e1", setAll, notAllowed},
	{"OPTIONS", configure, "", notAllowed},
	{"TRACE", configure, "", notAllowed},
	{"HEAD", configure, "", "405 empty"},
	{"PROPFIND", configure, "", notAllowed},
	{"BREW", configure, "", notAllowed},
	{"GET", configure + "/e1/deep", "", notFound},
	{"GET", base + "/other", "", notFound},
	{"GET", base + "/", "", notFound},
	{"GET", base, "", notFound},
	{"GET", base + "x", "", notFound},
	{"GET", "/other", "", notFound},
	{"GET", "/", "", notFound},
}

func (q request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", q.method, q.target, q.body))
}

// outcome describes the effect of a request: the changes in the store, or else the status
// with the handler's error code, the target of a redirect, or the kind of body.
func outcome(a reply, changes []string) string {
	if a.Status == http.StatusOK && len(changes) == 1 {
		return changes[0]
	}
	status := fmt.Sprint(a.Status)
	if len(changes) > 0 {
		return fmt.Sprintf("%s although %q", status, changes)
	}
	if target := a.Header.Get("Location"); target != "" {
		return status + " to " + target
	}
	isJSON := strings.HasPrefix(a.Header.Get("Content-Type"), "application/json")
	code, isError := strings.CutPrefix(a.Body, `{"error":"`)
	switch {
	case isError && isJSON:
		code, _, _ = strings.Cut(code, `"`)
		return status + " " + code
	case a.Body == welcome:
		return status + " " + welcome
	case a.Body == "":
		return status + " empty"
	case a.Status == http.StatusOK:
		return status
	case isJSON:
		return status + " json"
	}
	return status + " text"
}
