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
	// HTTP2 reports whether they were sent over HTTP/2, too. They are if the server speaks it.
	HTTP2 bool
	// Failures are the requests that were not refused, in the order of sending.
	Failures []Failure
	// NotChecked are the ways to send a request in which correct ones had no effect, so that
	// the check says nothing of them. Find out whether your mount means to refuse them.
	NotChecked []NotChecked
}

// NotChecked is a way to send a request that was not checked.
type NotChecked struct {
	// Form is "HTTP/1.1", "HTTP/1.0", "HTTP/2", "absolute form" (a URL for a target), or
	// "kept alive" (the second request over a connection).
	Form string
	// Method is that of the correct request. After a DELETE had no effect, the whole form is
	// not checked, or no longer.
	Method string
	// Reason is what happened to the correct request.
	Reason string
}

// String returns the form and the reason.
func (n NotChecked) String() string {
	return fmt.Sprintf("not checked: %s (a correct %s: %s)", n.Form, n.Method, n.Reason)
}

// Failure is a request that was not refused.
type Failure struct {
	// Outcome is what happened instead.
	Outcome Outcome
	// Class is the kind of request, such as "dots" or "query". The class "correct" is that of
	// correct requests for one entity.
	Class string
	// Form is the way in which it was sent, as in [NotChecked].
	Form string
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
	Redirected         // it was redirected to the path of all, which clients follow with the same method
	NoResponse         // there was none in time, and afterwards correct requests had no effect either
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
	kind := f.Class
	if f.Form != f.Class && f.Form != string(http11) {
		kind += ", " + f.Form
	}
	fmt.Fprintf(&b, "%v (%s): %s\n", f.Outcome, kind, f.Request)
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
	fmt.Fprintf(&b, "%d of %d requests failed\n", len(r.Failures), r.Requests)
	for _, n := range r.NotChecked {
		fmt.Fprintln(&b, n)
	}
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
