package portal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// host is the service around the portal, as one request sees it: its functions and its log.
type host struct {
	r      *http.Request // without a body, and with time for a layout and texts when ctx has ended
	ctx    context.Context
	logger *slog.Logger
	Client string // for whom somebody is signed in; "" if nobody is
}

// call calls a function of the host that isn't for a client, for which there is do. If the function
// fails or panics, the log gets the reason without secrets, and the person a sentence. The log also
// names a function that takes the rest of the time, since those without an error can't say so.
func (h *host) call(function string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = h.panicked(function, value)
		}
	}()
	isLate := h.r.Context().Err() != nil
	err = call()
	if !isLate && errors.Is(h.r.Context().Err(), context.DeadlineExceeded) {
		h.logAt(slog.LevelError, "portal: "+function+" took the rest of the time for the page", "client", redact.Printable(h.Client))
	}
	if err != nil {
		h.log("portal: "+function+" failed", func() []any { return []any{"error", h.redacted(err.Error(), egress.URL{})} })
		return unavailable
	}
	return nil
}

// do calls a function of the host that does something for the client, through the handler's door. Its
// errors can quote the request, which the handler doesn't know.
func (v *visit) do(operation string, scope webhookcfg.Scope, url egress.URL, call func(ctx context.Context) error) error {
	task := webhookcfg.Task{Operation: operation, Scope: scope, IsRead: true, IsPart: true}
	err := v.handler.Do(v.ctx, v.Client, task, func(ctx context.Context) error {
		if err := call(ctx); err != nil {
			return redact.Error(v.redacted(err.Error(), url), err)
		}
		return nil
	})
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	return err
}

// panicked logs a panic, and returns the error for the person. It withholds the panic's text,
// unless the runtime wrote it: it can be a part of the page, with all that the page shows.
func (h *host) panicked(where string, value any) error {
	err, _ := value.(error)
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler) // not a wrapper, since net/http only recognizes this one
	}
	// Also if the person has gone away, since a panic is always a defect.
	h.logAt(slog.LevelError, "portal: "+where+" panicked", "client", redact.Printable(h.Client), "error", "panic: "+redact.Panic(value), "stack", string(debug.Stack()))
	return problem{status: http.StatusInternalServerError, key: "error.server_error"}
}

// minCookie is the length of the shortest cookie to look for. The token of a session is longer, and
// a person could choose shorter ones to hide words of the reason.
const minCookie = 16

// maxCookies is the length of all cookies together, up to which we look for them. A stranger chooses
// them and, if the host quotes them, the text.
const maxCookies = 8 << 10

// redacted returns a text of the host's without the URL's path and query, in any of the usual
// spellings, without those of other URLs, and without the secrets in the request.
func (h *host) redacted(text string, url egress.URL) string {
	sent := 0
	for _, cookie := range h.r.Header["Cookie"] {
		sent += len(cookie)
	}
	if sent > maxCookies {
		return fmt.Sprintf("withheld: the cookies have %d bytes, too many to look for them", sent)
	}
	secrets, cookies := h.presented(), []string{h.r.Header.Get("Cookie")}
	for _, cookie := range h.r.Cookies() {
		cookies = append(cookies, cookie.Value)
	}
	for _, cookie := range cookies {
		if len(cookie) >= minCookie {
			secrets = append(secrets, cookie)
		}
	}
	return redact.Printable(redact.Text(text, secrets, url.Reveal(), url.String()))
}

// presented returns the secrets in the field Authorization.
func (h *host) presented() []string {
	authorization := h.r.Header.Get("Authorization")
	_, token, _ := strings.Cut(authorization, " ")
	_, password, _ := h.r.BasicAuth()
	return []string{authorization, strings.TrimSpace(token), password}
}

// log logs an error of the service, with what reason returns. If the person has gone away, it's not
// an error, and nobody needs its reason.
func (h *host) log(message string, reason func() []any) {
	if !errors.Is(h.ctx.Err(), context.Canceled) {
		h.logAt(slog.LevelError, message, append([]any{"client", redact.Printable(h.Client)}, reason()...)...)
	}
}

func (h *host) logAt(level slog.Level, message string, args ...any) {
	defer func() { _ = recover() }() // the logger can panic, too
	h.logger.Log(h.ctx, level, message, args...)
}
