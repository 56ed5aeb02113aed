package mounttest

// form is a way to send a request. A proxy can treat each of them differently.
type form string

const (
	http11    form = "HTTP/1.1"      // over a connection of its own
	http2     form = "HTTP/2"        // with TLS, or with prior knowledge
	keptAlive form = "kept alive"    // HTTP/1.1, the second request over a connection
	absolute  form = "absolute form" // HTTP/1.1, with a URL for a target
	http10    form = "HTTP/1.0"
)

// forms are all of them, in the order of sending.
var forms = []form{http11, http2, keptAlive, absolute, http10}

// isFull reports whether we make all attempts in a form, and not only a few.
func (f form) isFull() bool { return f == http11 || f == http2 }

// version returns the version of HTTP in the request line.
func (f form) version() string {
	switch f {
	case http10:
		return "HTTP/1.0"
	case http2:
		return "HTTP/2.0"
	default:
		return "HTTP/1.1"
	}
}
