package webhookcfg

import (
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"
)

const (
	ruleArrival = "The body did not arrive whole and in time"
	ruleMedia   = "The body must be application/json in UTF-8 without a content coding"
)

// readBody reads the body of a set into the memory of buf.
func (x *exchange) readBody(buf *[]byte) ([]byte, *fault) {
	if !isJSON(x.r.Header) {
		return nil, &fault{code: codeUnsupportedMediaType, description: ruleMedia}
	}
	if x.r.ContentLength > x.h.bodyLimit && x.r.Header.Get("Expect") != "" {
		return nil, tooLarge() // who asks first is not told to send it
	}
	data, err := appendAll((*buf)[:0], http.MaxBytesReader(x.w, x.r.Body, x.h.bodyLimit))
	*buf = data
	if err != nil {
		return nil, bodyFault(err)
	}
	x.liftReadTime()
	return data, nil
}

func tooLarge() *fault {
	return &fault{code: codeRequestTooLarge, description: "The body is too large"}
}

func bodyFault(err error) *fault {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge()
	}
	return &fault{code: codeInvalidRequest, description: ruleArrival, cause: err}
}

// hasBody reports whether the request has a body that is not known to be empty.
func (x *exchange) hasBody() bool {
	if x.r.ContentLength >= 0 || x.r.Body == nil {
		return x.r.ContentLength > 0
	}
	_, err := io.ReadFull(x.r.Body, make([]byte, 1))
	if !errors.Is(err, io.EOF) {
		return true
	}
	x.liftReadTime()
	return false
}

// limitReadTime bounds how long the caller may take to send its body, also if the
// handler never reads it: the server does, after the answer. The host's server
// may not support it; then the limit is the server's own.
func (x *exchange) limitReadTime() {
	if x.r.ContentLength != 0 && x.readTimeout() > x.h.timeout {
		_ = http.NewResponseController(x.w).SetReadDeadline(x.start.Add(x.h.timeout))
	}
}

// liftReadTime undoes it once the whole body was read: from then on, a limit that
// passes would look like a caller that hung up.
func (x *exchange) liftReadTime() {
	if own := x.readTimeout(); own > x.h.timeout {
		var deadline time.Time
		if own < noTimeout {
			deadline = x.start.Add(own)
		}
		_ = http.NewResponseController(x.w).SetReadDeadline(deadline)
	}
}

const noTimeout = time.Duration(math.MaxInt64)

// readTimeout is the host's own limit.
func (x *exchange) readTimeout() time.Duration {
	server, _ := x.r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil || server.ReadTimeout <= 0 {
		return noTimeout
	}
	return server.ReadTimeout
}

// appendAll is io.ReadAll into memory that is there already.
func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// isJSON reports whether the fields of a request announce a plain JSON body.
func isJSON(h http.Header) bool {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, hasCharset := params["charset"]
	return err == nil && media == "application/json" && (!hasCharset || strings.EqualFold(charset, "utf-8"))
}
