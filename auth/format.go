package auth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The kinds of lines in a credential file.
const (
	kindSHA256   = "sha256"
	kindPBKDF2   = "pbkdf2-sha256"
	kindOwner    = "owner"
	kindDisabled = "disabled"
)

// fileEntry is one property of a client: a line of a credential file, decoded.
type fileEntry struct {
	id    string
	kind  string
	hash  secretHash // of kindSHA256 and kindPBKDF2
	owner string     // of kindOwner
}

// The texts of these errors quote nothing of the line: it may hold a misplaced secret.
var (
	errKind   = errors.New("line is not id:sha256:hash, id:pbkdf2-sha256:rounds:salt:hash, id:owner:name or id:disabled")
	errDigest = errors.New("hash is not 64 hexadecimal digits")
	errSalt   = errors.New("salt is not 32 to 128 hexadecimal digits")
	errRounds = errors.New("rounds are not between 600000 and 10000000")
)

// parseLine decodes a line of a credential file that is neither blank nor a comment.
func parseLine(line string) (fileEntry, error) {
	id, rest, _ := strings.Cut(line, ":")
	if err := checkName(id); err != nil {
		return fileEntry{}, err
	}
	kind, value, hasValue := strings.Cut(rest, ":")
	e := fileEntry{id: id, kind: kind}
	var err error
	switch {
	case kind == kindSHA256 && hasValue:
		e.hash.sum, err = parseDigest(value)
	case kind == kindPBKDF2 && hasValue:
		e.hash, err = parsePBKDF2(value)
	case kind == kindOwner && hasValue:
		e.owner, err = value, checkName(value)
	case kind == kindDisabled && !hasValue:
	default:
		err = errKind
	}
	return e, err
}

func parseDigest(text string) (d digest, err error) {
	if len(text) != hex.EncodedLen(len(d)) {
		return d, errDigest
	}
	if _, err := hex.Decode(d[:], []byte(text)); err != nil {
		return d, errDigest
	}
	return d, nil
}

func parsePBKDF2(text string) (h secretHash, err error) {
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return h, errKind
	}
	if h.rounds, err = parseRounds(fields[0]); err != nil {
		return h, err
	}
	salt, err := hex.DecodeString(fields[1])
	if err != nil || len(salt) < minSaltLen || len(salt) > maxSaltLen {
		return h, errSalt
	}
	h.salt = string(salt)
	h.sum, err = parseDigest(fields[2])
	return h, err
}

func parseRounds(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < minRounds || n > maxRounds || strconv.Itoa(n) != text {
		return 0, errRounds
	}
	return n, nil
}

// parseFile decodes a credential file. An error comes with the number of the offending
// line, counted from 1.
func parseFile(text string) (b builder, line int, err error) {
	b = builder{}
	for text := range strings.Lines(text) {
		line++
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if strings.TrimSpace(text) == "" || text[0] == '#' {
			continue
		}
		e, err := parseLine(text)
		if err == nil {
			err = b.add(line, e)
		}
		if err != nil {
			return nil, line, err
		}
	}
	if pos := b.incomplete(); pos > 0 {
		return nil, pos, errNoSecret
	}
	if len(b) == 0 {
		return nil, max(line, 1), errNoClients
	}
	return b, 0, nil
}

// line encodes e; parseLine decodes it.
func (e fileEntry) line() string {
	fields := []string{e.id, e.kind}
	sum := hex.EncodeToString(e.hash.sum[:])
	switch e.kind {
	case kindSHA256:
		fields = append(fields, sum)
	case kindPBKDF2:
		fields = append(fields, strconv.Itoa(e.hash.rounds), hex.EncodeToString([]byte(e.hash.salt)), sum)
	case kindOwner:
		fields = append(fields, e.owner)
	}
	return strings.Join(fields, ":")
}

// SHA256Line returns the line of a credential file that lets a client sign in with a
// generated secret, such as one of [NewSecret]. It fails for an id or a secret that
// HTTP Basic cannot carry.
func SHA256Line(id, secret string) (string, error) {
	return secretLine(fileEntry{id: id, kind: kindSHA256, hash: secretHash{sum: sum(secret)}}, secret)
}

// PBKDF2Line returns the line of a credential file that lets a client sign in with a
// secret that a person chose: PBKDF2-HMAC-SHA-256, 600,000 rounds, a random salt. It
// takes as long as a sign-in. It fails for an id or a secret that HTTP Basic cannot
// carry.
func PBKDF2Line(id, secret string) (string, error) {
	h := randomHash()
	h.rounds = minRounds
	var err error
	if h.sum, err = derive(secret, h.salt, h.rounds); err != nil {
		return "", fmt.Errorf("auth: hashing a secret: %w", err)
	}
	return secretLine(fileEntry{id: id, kind: kindPBKDF2, hash: h}, secret)
}

func secretLine(e fileEntry, secret string) (string, error) {
	for _, err := range []error{checkName(e.id), checkSecret(secret)} {
		if err != nil {
			return "", fmt.Errorf("auth: %w", err)
		}
	}
	return e.line(), nil
}

const maxName = 128

var (
	errName   = errors.New("id or owner is not 1 to 128 visible ASCII characters without a colon, the first of them not #")
	errSecret = errors.New("secret is empty, not valid UTF-8, or contains a control character")
)

// checkName accepts the ids and owners that HTTP Basic can carry (RFC 7617 §2: no
// colon) and that a line of a credential file can start with.
func checkName(name string) error {
	visible := func(c rune) bool { return '!' <= c && c <= '~' && c != ':' }
	if name == "" || len(name) > maxName || name[0] == '#' || strings.ContainsFunc(name, func(c rune) bool { return !visible(c) }) {
		return errName
	}
	return nil
}

// checkSecret refuses secrets that no request can present.
func checkSecret(secret string) error {
	control := func(c rune) bool { return c < ' ' || c == 0x7F }
	if secret == "" || !utf8.ValidString(secret) || strings.ContainsFunc(secret, control) {
		return errSecret
	}
	return nil
}
