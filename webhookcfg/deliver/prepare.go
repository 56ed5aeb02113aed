package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// prepare lets the host add fields to the header of a signed request. The host works on a
// copy, so that nothing else of it can be sent.
func (o *Options) prepare(ctx context.Context, client, entity string, target egress.URL, m Message, r *http.Request) error {
	if o.Prepare == nil {
		return nil
	}
	sent := m.Body
	m.Body = bytes.Clone(sent)
	body := io.NopCloser(bytes.NewReader(m.Body))
	prepared := r.Clone(ctx)
	prepared.Body = body
	if err := guard("Options.Prepare", target, func() error { return o.Prepare(ctx, client, entity, m, prepared) }); err != nil {
		return err
	}
	if prepared.Body != body || !bytes.Equal(m.Body, sent) {
		return errors.New("deliver: Options.Prepare changed the body")
	}
	if err := checkPrepared(prepared, r); err != nil {
		return err
	}
	r.Header = prepared.Header
	return nil
}

// checkPrepared returns an error if more of a request was changed than fields that are the
// host's.
func checkPrepared(prepared, signed *http.Request) error {
	for _, part := range []struct {
		name    string
		changed bool
	}{
		{"the method", prepared.Method != signed.Method},
		{"the URL", prepared.URL == nil || prepared.URL.String() != signed.URL.String()},
		{"Host", prepared.Host != signed.Host},
		{"ContentLength", prepared.ContentLength != signed.ContentLength},
		{"TransferEncoding", len(prepared.TransferEncoding) > 0},
		{"Trailer", len(prepared.Trailer) > 0},
		{"Close", prepared.Close},
	} {
		if part.changed {
			return fmt.Errorf("deliver: Options.Prepare changed %s of the request", part.name)
		}
	}
	for _, name := range signatureFields {
		if !slices.Equal(prepared.Header[name], signed.Header[name]) {
			return fmt.Errorf("deliver: Options.Prepare changed the field %s", name)
		}
	}
	for name, values := range prepared.Header {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isFieldName(name), slices.ContainsFunc(values, hasControl):
			return fmt.Errorf("deliver: Options.Prepare set the field %q, whose name or value is invalid", name)
		case isConnectionField(canonical):
			return fmt.Errorf("deliver: Options.Prepare set the field %s, which is the connection's", name)
		case name != canonical && slices.Contains(signatureFields, canonical):
			return fmt.Errorf("deliver: Options.Prepare set a second field %s", name)
		}
	}
	return nil
}

var signatureFields = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}

// isConnectionField reports whether a field is about the connection or about where the message
// ends, rather than about the message.
func isConnectionField(canonical string) bool {
	switch canonical {
	case "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(canonical, "Proxy-")
}

// isFieldName reports whether name is a token (RFC 9110, section 5.6.2).
func isFieldName(name string) bool {
	isTokenByte := func(c byte) bool {
		return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
	}
	for i := range len(name) {
		if !isTokenByte(name[i]) {
			return false
		}
	}
	return name != ""
}

// hasControl reports whether text has a control character other than a tab.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// guard calls a function of the host that knows a URL. The error shows no more of the URL than
// the URL itself does, and of others only scheme, host and port. It withholds a text that is too
// long for that. If the function panics, that's an error, too, and the slot of the attempt becomes
// free.
func guard(function string, target egress.URL, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("deliver: %s panicked: %s\n\n%s", function, redact.Panic(value), debug.Stack())
		}
	}()
	if err := call(); err != nil {
		return redact.Error("deliver: "+function+": "+redact.Printable(redact.Text(err.Error(), nil, target.Reveal(), target.String())), err)
	}
	return nil
}
