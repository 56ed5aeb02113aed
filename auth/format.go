package auth

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The first and the last line of a credential file.
const (
	markBegin = "begin"
	markEnd   = "end"
)

// The kinds of the other lines.
const (
	kindSHA256   = "sha256"
	kindPBKDF2   = "pbkdf2-sha256"
	kindDisabled = "disabled"
)

// fileEntry is a line of a credential file, decoded.
type fileEntry struct {
	id   string
	kind string
	storedSecret
	owner    string // "" if the line has none
	disabled bool
}

// These errors never quote the line, since it may hold a misplaced secret.
var (
	errKind   = errors.New("line is not id:sha256:hash, id:pbkdf2-sha256:rounds:salt:hash or id:disabled")
	errField  = errors.New("field is repeated, or none of name=, owner=, until= and disabled")
	errUntil  = errors.New("until is not a time as in RFC 3339, such as 2027-01-31T12:00:00Z")
	errDigest = errors.New("hash is not 64 hexadecimal digits")
	errEmpty  = errors.New("hash is the one of an empty secret: perhaps the variable with the secret wasn't set")
	errSalt   = errors.New("salt is not 32 to 128 hexadecimal digits")
	errRounds = errors.New("rounds are not between 600000 and 10000000")

	errNoBegin    = errors.New("first line is not begin: put the lines begin and end around all others, and write owner=<id> and disabled after the hashes, not on lines of their own")
	errUnfinished = errors.New("last line doesn't end with a newline: add one, unless the file was cut short or is being written")
	errNoEnd      = errors.New("last line is not end: the file was cut short or is being written")
	errAfterEnd   = errors.New("line after the line end")
	errBlank      = errors.New("line starts with a blank, or has one after begin or end: remove it")
	errBOM        = errors.New("line starts with a byte order mark (U+FEFF), which nobody sees: save the file as UTF-8 without one")
	errUTF16      = errors.New("file is in UTF-16, or no text: save it as UTF-8, without a byte order mark")
	errLineEnds   = errors.New("line has a carriage return (U+000D): save the file with the line ends of Unix or Windows")
)

// checkText refuses what nobody sees in a line: the line would be wrong, but look right. Comments
// can contain anything.
func checkText(line string) error {
	switch {
	case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		return nil
	case strings.ContainsRune(line, 0), strings.HasPrefix(line, "\xff\xfe"), strings.HasPrefix(line, "\xfe\xff"):
		return errUTF16
	case strings.HasPrefix(line, "\ufeff"):
		return errBOM
	case strings.ContainsRune(line, '\r'):
		return errLineEnds
	}
	for _, c := range line {
		if c != '\t' && !unicode.IsPrint(c) {
			return fmt.Errorf("line has the invisible character %U: remove it", c)
		}
	}
	text := strings.Trim(line, " \t")
	if text[0] != line[0] || line != text && (text == markBegin || text == markEnd) {
		return errBlank
	}
	return nil
}

// parseLine decodes a line of a credential file: one with a secret, or one that reserves an
// id.
func parseLine(line string) (fileEntry, error) {
	first, fields := line, ""
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		first, fields = line[:i], line[i:]
	}
	id, rest, _ := strings.Cut(first, ":")
	if err := checkName(id); err != nil {
		return fileEntry{}, err
	}
	kind, value, hasValue := strings.Cut(rest, ":")
	e := fileEntry{id: id, kind: kind}
	var err error
	switch {
	case kind == kindSHA256 && hasValue:
		if e.sum, err = parseDigest(value); err == nil && e.sum == sum("") {
			err = errEmpty
		}
	case kind == kindPBKDF2 && hasValue:
		e.secretHash, err = parsePBKDF2(value)
	case kind == kindDisabled && !hasValue:
		e.disabled = true
	default:
		err = errKind
	}
	if err == nil {
		err = e.parseFields(fields)
	}
	return e, err
}

// parseFields decodes the fields of a line, in any order. A line without a secret can only
// have an owner.
func (e *fileEntry) parseFields(text string) (err error) {
	blank := func(c rune) bool { return c == ' ' || c == '\t' }
	var keys []string
	for _, field := range strings.FieldsFunc(text, blank) {
		key, value, hasValue := strings.Cut(field, "=")
		switch {
		case slices.Contains(keys, key):
			return errField
		case key == "owner" && hasValue:
			e.owner, err = value, checkName(value)
		case e.kind == kindDisabled:
			return errField
		case key == "name" && hasValue:
			e.name, err = value, checkName(value)
		case key == "until" && hasValue:
			e.until, err = parseUntil(value)
		case field == kindDisabled:
			e.disabled = true
		default:
			return errField
		}
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	return nil
}

func parseUntil(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() { // the zero time would mean no end
		return t, errUntil
	}
	return t, nil
}

// parseFile decodes a credential file. An error comes with the number of the bad line,
// counted from 1.
func parseFile(text string) (b builder, line int, err error) {
	for text := range strings.Lines(text) {
		line++
		if err := checkText(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")); err != nil {
			return nil, line, err
		}
	}
	switch {
	case strings.HasSuffix(text, "\r"):
		return nil, line, errLineEnds
	case text != "" && !strings.HasSuffix(text, "\n"):
		return nil, line, errUnfinished
	}
	b, line = builder{}, 0
	begun, ended := false, false
	for text := range strings.Lines(text) {
		line++
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		switch {
		case ended:
			err = errAfterEnd
		case strings.TrimSpace(text) == "" || text[0] == '#':
		case !begun:
			begun = text == markBegin
			if !begun {
				err = errNoBegin
			}
		case text == markEnd:
			ended = true
		default:
			err = b.addLine(line, text)
		}
		if err != nil {
			return nil, line, err
		}
	}
	switch {
	case !ended:
		return nil, max(line, 1), errNoEnd
	case len(b) == 0:
		return nil, line, errNoClients
	}
	return b, 0, nil
}

func (b builder) addLine(pos int, line string) error {
	e, err := parseLine(line)
	if err != nil {
		return err
	}
	return b.add(pos, e)
}

// SHA256Line returns a line for a credential file, so that a client can sign in with a
// generated secret, such as one from [GenerateSecret]. You can append fields to it. It fails
// if HTTP Basic can't carry the id or the secret, or if the secret has fewer than 16
// characters.
func SHA256Line(id string, secret Secret) (string, error) {
	if err := checkNew(id, secret.Reveal(), minGenerated); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%s:%x", id, kindSHA256, sum(secret.Reveal())), nil
}

// PBKDF2Line returns a line for a credential file, so that a client can sign in with a secret
// that a person chose. It uses PBKDF2-HMAC-SHA-256 with 600,000 rounds and a random salt, so
// it takes as long as a sign-in. You can append fields to the line. It fails if HTTP Basic
// can't carry the id or the secret, or if the secret has fewer than 8 characters.
func PBKDF2Line(id string, secret Secret) (string, error) {
	return stdHasher.newPBKDF2Line(id, secret.Reveal())
}

func (h *hasher) newPBKDF2Line(id, secret string) (string, error) {
	if err := checkNew(id, secret, minChosen); err != nil {
		return "", err
	}
	salt := newSalt()
	sum, err := h.derive(secret, salt, newRounds)
	if err != nil {
		return "", fmt.Errorf("auth: hashing a secret: %w", err)
	}
	return pbkdf2Line(id, secretHash{newRounds, salt, sum}), nil
}

func checkNew(id, secret string, minLen int) error {
	for _, err := range []error{checkName(id), checkSecret(secret, minLen)} {
		if err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	return nil
}

const maxName = 128

var (
	errName   = errors.New("id, owner or name is not 1 to 128 visible ASCII characters without a colon, the first of them not #")
	errSecret = errors.New("secret is not valid UTF-8 or contains a control character")
)

// checkName accepts ids, owners and names that HTTP Basic can carry (RFC 7617 §2: no colon)
// and that can start a line of a credential file.
func checkName(name string) error {
	visible := func(c rune) bool { return '!' <= c && c <= '~' && c != ':' }
	if name == "" || len(name) > maxName || name[0] == '#' || strings.ContainsFunc(name, func(c rune) bool { return !visible(c) }) {
		return errName
	}
	return nil
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

func pbkdf2Line(id string, h secretHash) string {
	return fmt.Sprintf("%s:%s:%d:%x:%x", id, kindPBKDF2, h.rounds, h.salt, h.sum)
}
