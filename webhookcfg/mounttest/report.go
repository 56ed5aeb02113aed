package mounttest

import (
	"fmt"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
)

// Report is the result of a check.
type Report struct {
	// Requests is how many malformed and ambiguous requests were sent.
	Requests int
	// HTTP2 reports whether they were sent over HTTP/2, too. They are if the server speaks
	// it.
	HTTP2 bool
	// Failures are the requests that your mount should have refused, in the order of sending.
	Failures []Failure
	// NotChecked lists the forms of request in which even correct requests had no effect, so
	// the check can't say anything about them. Find out whether your mount refuses them on
	// purpose.
	NotChecked []NotChecked
}

// NotChecked is a form of request that wasn't checked.
type NotChecked struct {
	// Form is "HTTP/1.1", "HTTP/1.0", "HTTP/2", "absolute form" (a URL for a target), or
	// "kept alive" (the second request over a connection).
	Form string
	// Method is the method of the correct request. If a DELETE has no effect, nothing more is
	// checked in that form.
	Method string
	// Reason says what happened to the correct request.
	Reason string
}

// String returns the form and the reason.
func (n NotChecked) String() string {
	return fmt.Sprintf("not checked: %s, because a correct %s doesn't work there (%s)", n.Form, n.Method, n.Reason)
}

// Failure is a request that your mount should have refused.
type Failure struct {
	// Outcome says what happened instead.
	Outcome Outcome
	// Class is the kind of request, such as "dots" or "query". Correct requests for one
	// entity have the class "correct".
	Class string
	// Form says how it was sent, as in [NotChecked].
	Form string
	// Request is the request, quoted as it was sent but without credentials. Requests over
	// HTTP/2 are shown like HTTP/1.1.
	Request string
	// Status is the status of the response, or 0 if there was none.
	Status int
	// Location is the target of a redirect.
	Location string
	// Received is the request line that reached your application, if [Target.Received] is set.
	Received string
	// Advice says what you can change.
	Advice string
}

// Outcome says how a request failed.
type Outcome uint8

// The outcomes of failed requests.
const (
	_          Outcome = iota
	Widened            // it reached all entities
	Redirected         // it was redirected to the path for all entities; clients follow with the same method
	SignedIn           // it was carried out without valid credentials
	NoResponse         // it got no response in time, and afterwards correct requests had no effect either
)

var outcomes = [...]string{"no outcome", "reached all entities", "redirected", "carried out without valid credentials", "no response"}

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
		fmt.Fprintf(&b, "\tresponse: %d %s\n", f.Status, redact.Printable(f.Location))
	}
	if f.Received != "" {
		fmt.Fprintf(&b, "\tthe application received: %q\n", f.Received)
	}
	return b.String()
}

// String returns the whole report as text, with each piece of advice once.
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
		"If your proxy can't do that, set Options.AllScope and OriginalTarget."
	adviceQuery = "Pass the query on untouched, even an empty one: it may name an entity, and the handler " +
		"can't refuse it if it doesn't see it."
	adviceBody = "Pass the body of a DELETE on, or refuse the request: the body may name an entity."
	adviceJSON = "Pass bodies on byte for byte: JSON that was decoded and encoded again can lose the identifier, " +
		"or the fact that it was null."
	adviceOriginal = "Let the proxy set the field with the original request target, also if a client sends one, " +
		"and honour such fields nowhere else."
	adviceMethod = "Pass the method on untouched, and honour nothing in a request that overrides it."

	adviceCredentials = "Let the handler check the credentials of every request: add none to a request, remember none " +
		"for a connection or an address, believe no field that names a user, and cache no response."
	adviceRedirect   = "Turn off redirects to cleaned paths, or put Handler.Before in front of the part that sends them."
	adviceNoResponse = "Find out which part holds the request back, and give it a time limit."
)
