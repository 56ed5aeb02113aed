package mounttest

import (
	"fmt"
	"slices"
	"strings"
)

// Report is the result of a check.
type Report struct {
	// Requests is the number of malformed and ambiguous requests that were sent.
	Requests int
	// HTTP2 reports whether they were sent over HTTP/2, too. They are if BaseURL is https
	// and the server agrees.
	HTTP2 bool
	// Failures are the requests that were not refused, in the order of sending.
	Failures []Failure
}

// Failure is a request that was not refused.
type Failure struct {
	// Outcome is what happened instead.
	Outcome Outcome
	// Class is the kind of request, such as "dots" or "query".
	Class string
	// Request is the request as it was sent, quoted, without credentials. Over HTTP/2 it
	// has the form of HTTP/1.1.
	Request string
	// Status is the status of the response, 0 if there was none.
	Status int
	// Location is the target of a redirect.
	Location string
	// Received is what reached the application, if the target can tell.
	Received string
	// Advice is what to change.
	Advice string
}

// Outcome is how a request failed.
type Outcome uint8

// The outcomes of failed requests.
const (
	_          Outcome = iota
	Widened            // it reached all entities
	Redirected         // the response was a redirect, which clients follow with the same method
	NoResponse         // there was none in time; whether it still takes effect is unknown
)

var outcomes = [...]string{"no outcome", "reached all entities", "redirected", "no response"}

// String returns the outcome in words.
func (o Outcome) String() string {
	if int(o) >= len(outcomes) {
		o = 0
	}
	return outcomes[o]
}

// String returns the failure in a few lines, without the advice.
func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (%s): %s\n", f.Outcome, f.Class, f.Request)
	if f.Status != 0 {
		fmt.Fprintf(&b, "\tresponse: %d %s\n", f.Status, f.Location)
	}
	if f.Received != "" {
		fmt.Fprintf(&b, "\tthe application received: %q\n", f.Received)
	}
	return b.String()
}

// String returns the whole report as text, each piece of advice once.
func (r Report) String() string {
	var b strings.Builder
	versions := "HTTP/1.0 and HTTP/1.1"
	if r.HTTP2 {
		versions = "HTTP/1.0, HTTP/1.1 and HTTP/2"
	}
	fmt.Fprintf(&b, "%d of %d requests over %s failed\n", len(r.Failures), r.Requests, versions)
	var advice []string
	for _, f := range r.Failures {
		b.WriteString(f.String())
		if !slices.Contains(advice, f.Advice) {
			advice = append(advice, f.Advice)
		}
	}
	for _, text := range advice {
		b.WriteString("To do: " + text + "\n")
	}
	return b.String()
}

const (
	advicePath = "Pass the path on untouched: no cleaning, no decoding, no rewriting. Serve the handler " +
		"under Options.BasePath instead of stripping a prefix, and put Handler.Before around the outermost mux. " +
		"If a proxy cannot do that, set Options.AllScope and OriginalTarget."
	adviceQuery = "Pass the query on untouched, also an empty one: it may name an entity, and the handler " +
		"refuses it only where it sees it."
	adviceBody = "Pass the body of a DELETE on, or refuse the request: the body may name an entity."
	adviceJSON = "Pass bodies on byte for byte: JSON that was decoded and encoded again can lose the identifier, " +
		"or the fact that it was null."
	adviceOriginal = "Replace the field in which the proxy passes on the request target, never keep that of a client, " +
		"and honour such a field nowhere else."
	adviceMethod     = "Honour no header that overrides the method of a request."
	adviceRedirect   = "Turn off redirects to cleaned paths, or put Handler.Before in front of what sends them."
	adviceNoResponse = "Find out which part holds the request back, and bound its time."
)
