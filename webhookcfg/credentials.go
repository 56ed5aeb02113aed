package webhookcfg

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxToken limits the work that an unauthenticated caller can cause. It leaves room for an id
// and a secret of 1.5 KiB each.
const maxToken = 4096

// strictBase64 refuses the other spellings of a token that unused padding bits would allow.
var strictBase64 = base64.StdEncoding.Strict()

var (
	errAuthorizationCount  = errors.New("webhookcfg: the request has no Authorization header, or more than one")
	errAuthorizationScheme = errors.New("webhookcfg: the Authorization header does not use the scheme Basic")
	errAuthorizationToken  = errors.New("webhookcfg: malformed Basic credentials")
)

// basicChallenge returns the field WWW-Authenticate of a 401, by RFC 7617 §2.1.
func basicChallenge(realm string) string {
	return `Basic realm="` + realm + `", charset="UTF-8"`
}

// basicCredentials returns the id and the secret of a request, and the token that holds them.
// It parses strictly, by RFC 7617 §2 and RFC 9110 §11.4. We can't use
// [http.Request.BasicAuth]: it reads only the first of several fields, and accepts empty
// parts, control characters, invalid UTF-8 and several spellings of one token.
func basicCredentials(h http.Header) (id, secret, token string, err error) {
	fields := h["Authorization"]
	if len(fields) != 1 {
		return "", "", "", errAuthorizationCount
	}
	scheme, token, found := strings.Cut(fields[0], " ")
	// EqualFold also folds some letters beyond ASCII to ASCII ones. The length rules them
	// out.
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
	return strings.Clone(id), secret, token, nil // or an event that keeps the id would keep the secret in memory
}

// decodeToken decodes a token, if it's in canonical base64.
func decodeToken(token string) (text string, ok bool) {
	// The decoder skips line breaks, so refuse them here.
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return "", false
	}
	pair, err := strictBase64.DecodeString(token)
	return string(pair), err == nil
}

// validCredentials reports whether a request could carry the id and the secret.
func validCredentials(id, secret string) bool {
	return id != "" && secret != "" && !strings.Contains(id, ":") && base64.StdEncoding.EncodedLen(len(id)+1+len(secret)) <= maxToken &&
		isPlainText(id) && isPlainText(secret)
}

// isPlainText reports whether text is valid UTF-8 without ASCII control characters.
func isPlainText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return c < 0x20 || c == 0x7F })
}
