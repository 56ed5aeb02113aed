package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// reference does the handler's work in one piece, just for this benchmark. It has the same
// checks in the same order, but no options. It serves one client, and one form of the
// interface.
type reference struct {
	mu        sync.Mutex
	base      map[string]hook
	overrides map[string]map[string]hook
	digest    [sha256.Size]byte
	bodies    sync.Pool
}

type hook struct {
	url   string
	since int64
	off   bool
}

const referencePath = "/api/v1/configure/configure-webhook"

func newReference(id, secret string) *reference {
	r := &reference{
		base:      make(map[string]hook),
		overrides: make(map[string]map[string]hook),
		digest:    sha256.Sum256([]byte(id + "\x00" + secret)),
	}
	r.bodies.New = func() any { buf := make([]byte, 0, 512); return &buf }
	return r
}

func (h *reference) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), referencePath)
	if !ok || rest != "" && rest[0] != '/' || strings.Count(rest, "/") > 1 {
		refuse(w, 404, "not_found")
		return
	}
	if !(r.Method == "POST" && rest == "" || r.Method == "DELETE") {
		refuse(w, 405, "method_not_allowed")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	defer func() {
		if recover() != nil {
			refuse(w, 500, "server_error")
		}
	}()
	client, ok := h.signIn(r.Header)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="webhooks", charset="UTF-8"`)
		refuse(w, 401, "invalid_client")
		return
	}
	if r.Method == "DELETE" {
		h.delete(ctx, w, r, client, rest)
		return
	}
	h.post(ctx, w, r, client)
}

func (h *reference) signIn(header http.Header) (client string, ok bool) {
	fields := header["Authorization"]
	if len(fields) != 1 || len(fields[0]) < 6 || !strings.EqualFold(fields[0][:6], "Basic ") {
		return "", false
	}
	token := strings.TrimLeft(fields[0][6:], " ")
	if len(token) > 4096 || strings.ContainsAny(token, "\r\n") {
		return "", false
	}
	var buf [3072]byte
	n, err := base64.StdEncoding.Decode(buf[:], []byte(token))
	if err != nil || !utf8.Valid(buf[:n]) {
		return "", false
	}
	for _, c := range buf[:n] {
		if c < ' ' || c == 0x7F {
			return "", false
		}
	}
	colon := bytes.IndexByte(buf[:n], ':')
	if colon <= 0 || colon == n-1 {
		return "", false
	}
	client = string(buf[:colon])
	buf[colon] = 0
	digest := sha256.Sum256(buf[:n])
	return client, subtle.ConstantTimeCompare(digest[:], h.digest[:]) == 1
}

func (h *reference) delete(ctx context.Context, w http.ResponseWriter, r *http.Request, client, rest string) {
	if len(rest) > 1 {
		id, err := url.PathUnescape(rest[1:])
		if err != nil || !goodID(id) {
			refuse(w, 400, "invalid_request")
			return
		}
		h.unset(client, id)
		h.succeed(ctx, w)
		return
	}
	if r.URL.RawQuery != "" || r.URL.ForceQuery || announcesBody(r) ||
		r.RequestURI != "" && !strings.HasSuffix(r.RequestURI, r.URL.EscapedPath()) {
		refuse(w, 400, "invalid_request")
		return
	}
	h.mu.Lock()
	delete(h.base, client)
	delete(h.overrides, client)
	h.mu.Unlock()
	h.succeed(ctx, w)
}

// announcesBody reports whether a request has a body. Don't rely on ContentLength alone: over
// HTTP/2 it can be 0 although there's a body.
func announcesBody(r *http.Request) bool {
	if r.ContentLength != 0 || r.Header["Expect"] != nil {
		return true
	}
	for _, length := range r.Header["Content-Length"] {
		if length != "0" {
			return true
		}
	}
	if r.Body == http.NoBody {
		return false
	}
	n, err := r.Body.Read(make([]byte, 1))
	return n > 0 || err != io.EOF
}

func (h *reference) unset(client, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.base[client]; !ok {
		delete(h.overrides[client], id)
		return
	}
	h.override(client, id, hook{since: time.Now().Unix(), off: true})
}

func (h *reference) override(client, id string, entry hook) {
	entries := h.overrides[client]
	if entries == nil {
		entries = make(map[string]hook)
		h.overrides[client] = entries
	}
	entries[id] = entry
}

func (h *reference) post(ctx context.Context, w http.ResponseWriter, r *http.Request, client string) {
	if len(r.Header["Content-Type"]) != 1 || r.Header["Content-Type"][0] != "application/json" || r.Header["Content-Encoding"] != nil {
		refuse(w, 415, "unsupported_media_type")
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(10*time.Second)) == nil {
		defer control.SetReadDeadline(time.Time{})
	}
	buf := h.bodies.Get().(*[]byte)
	defer h.bodies.Put(buf)
	body := bytes.NewBuffer((*buf)[:0])
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, 16<<10))
	*buf = body.Bytes()
	if err != nil {
		status, code := 400, "invalid_request"
		if over := new(http.MaxBytesError); errors.As(err, &over) {
			status, code = 413, "request_too_large"
		}
		refuse(w, status, code)
		return
	}
	id, hasID, target, ok := scanBody(*buf)
	if !ok || hasID && !goodID(id) || !hasID && r.URL.RawQuery != "" {
		refuse(w, 400, "invalid_request")
		return
	}
	if !goodURL(target) {
		refuse(w, 400, "invalid_webhook_url")
		return
	}
	entry := hook{url: target, since: time.Now().Unix()}
	h.mu.Lock()
	if hasID {
		h.override(client, id, entry)
	} else {
		h.base[client] = entry
		delete(h.overrides, client)
	}
	h.mu.Unlock()
	h.succeed(ctx, w)
}

func (h *reference) succeed(ctx context.Context, w http.ResponseWriter) {
	if ctx.Err() != nil {
		refuse(w, 503, "temporarily_unavailable")
		return
	}
	respond(w, 200, []byte(`{"message":"successful"}`))
}

// scanBody parses an object with the two known keys. It rejects escapes, because the measured
// requests don't have any.
func scanBody(data []byte) (id string, hasID bool, target string, ok bool) {
	if !utf8.Valid(data) {
		return "", false, "", false
	}
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 || data[0] != '{' {
		return "", false, "", false
	}
	data = data[1:]
	hasURL := false
	for {
		key, rest, ok := scanString(data)
		if !ok {
			return "", false, "", false
		}
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			return "", false, "", false
		}
		value, rest, ok := scanString(rest[1:])
		switch {
		case !ok:
			return "", false, "", false
		case string(key) == "endpoint_id" && !hasID:
			id, hasID = string(value), true
		case string(key) == "webhook_url" && !hasURL:
			target, hasURL = string(value), true
		default:
			return "", false, "", false
		}
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) > 0 && rest[0] == ',' {
			data = rest[1:]
			continue
		}
		end := len(rest) > 0 && rest[0] == '}' && len(bytes.TrimLeft(rest[1:], " \t\r\n")) == 0
		return id, hasID, target, end && hasURL
	}
}

func scanString(data []byte) (value, rest []byte, ok bool) {
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 || data[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return data[1:i], data[i+1:], true
		case c < ' ' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func goodID(id string) bool {
	if len(id) == 0 || len(id) > 128 || id == "." || id == ".." {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._~:@-", c) >= 0) {
			return false
		}
	}
	return true
}

func goodURL(target string) bool {
	if len(target) == 0 || len(target) > 2048 {
		return false
	}
	for _, c := range []byte(target) {
		if c <= ' ' || c > '~' || c == '\\' || c == '#' {
			return false
		}
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "https" || u.Opaque != "" || u.User != nil || strings.Contains(u.Host, "@") {
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
			return false
		}
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == "" && addr.IsGlobalUnicast() && !addr.IsPrivate()
	}
	return goodName(host)
}

func goodName(host string) bool {
	if host == "" || len(host) > 253 || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return false
	}
	for rest := host; ; {
		label, next, more := strings.Cut(rest, ".")
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		digits := 0
		for _, c := range []byte(label) {
			if c >= '0' && c <= '9' {
				digits++
			} else if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_') {
				return false
			}
		}
		if !more {
			return digits < len(label) && !strings.HasPrefix(label, "0x")
		}
		rest = next
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	respond(w, status, []byte(`{"error":"`+code+`","error_description":"refused"}`))
}

func respond(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
