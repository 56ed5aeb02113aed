package webhookcfg

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxToken bounds the work for an unauthenticated caller; it allows ids and secrets
// of 1.5 KiB each.
const maxToken = 4096

// strictBase64 refuses other spellings of a token, which unused padding bits allow.
var strictBase64 = base64.StdEncoding.Strict()

var (
	errAuthorizationCount  = errors.New("webhookcfg: not exactly one Authorization field")
	errAuthorizationScheme = errors.New("webhookcfg: Authorization field without the scheme Basic")
	errAuthorizationToken  = errors.New("webhookcfg: malformed Basic credentials")
)

// basicCredentials returns the credentials of a request and the token that holds them,
// parsed strictly by RFC 7617 §2 and RFC 9110 §11.4. [http.Request.BasicAuth] does not
// serve here: it reads only the first of several fields and accepts empty parts, control
// characters, invalid UTF-8 and more than one spelling of a token.
func basicCredentials(h http.Header) (id, secret, token string, err error) {
	fields := h["Authorization"]
	if len(fields) != 1 {
		return "", "", "", errAuthorizationCount
	}
	scheme, token, found := strings.Cut(fields[0], " ")
	// The length excludes letters beyond ASCII that EqualFold folds to ASCII ones.
	if !found || len(scheme) != len("Basic") || !strings.EqualFold(scheme, "Basic") {
		return "", "", "", errAuthorizationScheme
	}
	token = strings.TrimLeft(token, " ")
	pair, ok := decodeToken(token)
	if !ok {
		return "", "", "", errAuthorizationToken
	}
	id, secret, _ = strings.Cut(pair, ":")
	if !validCredentials(id, secret) {
		return "", "", "", errAuthorizationToken
	}
	return strings.Clone(id), secret, token, nil // an event that keeps the id must not keep the secret
}

// decodeToken decodes the one canonical base64 spelling of a text.
func decodeToken(token string) (text string, ok bool) {
	// Line breaks are refused here, since the decoder skips them.
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return "", false
	}
	pair, err := strictBase64.DecodeString(token)
	return string(pair), err == nil
}

// validCredentials reports whether a request can hold the id and the secret.
func validCredentials(id, secret string) bool {
	return id != "" && secret != "" && !strings.Contains(id, ":") && base64.StdEncoding.EncodedLen(len(id)+1+len(secret)) <= maxToken &&
		isPlainText(id) && isPlainText(secret)
}

// isPlainText reports whether text is UTF-8 without control characters of ASCII.
func isPlainText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return c < 0x20 || c == 0x7F })
}

// shownID returns an id that nobody verified, for events, unless it holds the secret, if there
// is one.
func shownID(id, secret string) string {
	const limit = 128
	shown := strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, id)
	if secret != "" && (strings.Contains(id, secret) || strings.Contains(shown, secret)) {
		return ""
	}
	for len(shown) > limit {
		_, size := utf8.DecodeLastRuneInString(shown)
		shown = shown[:len(shown)-size]
	}
	return shown
}
