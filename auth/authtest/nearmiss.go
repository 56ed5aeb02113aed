package authtest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nearMiss is a text that some verifiers can't tell from the right one.
type nearMiss struct {
	text string
	how  string // it differs from the right one; reports show this, since a text can be a secret
}

// wrongSecrets returns secrets that are nearly right.
func wrongSecrets(h Harness, c Credential) []nearMiss {
	return distinct(slices.Concat(wrongEnds(h, c), misspelled(c.Secret), encodedSecrets(c.Secret), hashedSecrets(c.Secret), []nearMiss{
		{c.Secret + c.Secret, "twice"},
		{c.ID, "the id"},
		{" ", "a blank"},
		{"\u00a0", "a no-break space"},
		{"\u200b", "a zero-width space"},
		{"null", "null"},
		{"undefined", "undefined"},
		{`{"$ne":""}`, "an object of a query"},
		{`{"$gt":""}`, "an object of a query"},
		{c.Secret + "123456", "with the code of a device"},
		{c.Secret + ",123456", "with the code of a device"},
		{strings.Repeat("x", 1000), "1000 letters"},
		{strings.Repeat("x", 5000), "5000 letters"},
		{c.Secret + strings.Repeat("x", 5000), "with 5000 letters more"},
	}), func(secret string) bool { return !isKnown(h, Credential{ID: c.ID, Secret: secret}) })
}

// unknownIDs returns ids that look like one of the harness, but aren't.
func unknownIDs(h Harness, id string) []nearMiss {
	return distinct(slices.Concat([]nearMiss{
		{id + "-unknown", "with a suffix"},
		{"unknown-" + id, "with a prefix"},
	}, misspelled(id), addressed(id), []nearMiss{
		{strings.Repeat("x", 1000), "1000 letters"},
		{id + strings.Repeat(" ", 300) + "x", "with 300 blanks and a letter"},
	}), func(near string) bool { return !isID(h, near) })
}

// distinct returns each text once, if it's wrong.
func distinct(all []nearMiss, isWrong func(string) bool) (kept []nearMiss) {
	seen := make(map[string]bool)
	for _, near := range all {
		if near.text == "" || seen[near.text] || !isWrong(near.text) {
			continue
		}
		seen[near.text] = true
		kept = append(kept, near)
	}
	return kept
}

// parts returns the first character, what's between, and the last character.
func parts(text string) (first, middle, last string) {
	_, n := utf8.DecodeRuneInString(text)
	_, m := utf8.DecodeLastRuneInString(text[n:])
	return text[:n], text[n : len(text)-m], text[len(text)-m:]
}

// misspelled returns near misses of an id or a secret. Some verifiers fold, trim or cut what
// they get, match it as a pattern, or pass it to another language unquoted.
func misspelled(text string) []nearMiss {
	first, middle, last := parts(text)
	tail, start := middle+last, first+middle
	if tail == "" {
		start = ""
	}
	all := []nearMiss{
		{start, "without its last character"},
		{tail, "without its first character"},
		{text + "x", "with another letter at the end"},
		{swapCase(text), "in the other letter case"},
		{strings.ToUpper(text), "in capital letters"},
		{strings.ToLower(text), "in small letters"},
		{swapCase(first) + tail, "with the first letter in the other case"},
		{start + swapCase(last), "with the last letter in the other case"},
		{foldLetter(text), "with a letter that some fold to the right one"},
		{strings.Replace(text, "ss", "ß", 1), "with ß for ss"},
		{wide(text), "in full-width letters"},
		{strings.ReplaceAll(text, ".", "\u3002"), "with an ideographic full stop"},
		{accented(text), "with an accent"},
		{first + "\u0301" + tail, "with a combining accent"},
		{text + " ", "with a blank at the end"},
		{" " + text, "with a blank at the start"},
		{first + " " + tail, "with a blank after its first character"},
		{text + "\u00a0", "with a no-break space"},
		{text + "\u3000", "with a full-width space"},
		{strings.ReplaceAll(text, " ", ""), "without blanks"},
		{strings.ReplaceAll(text, " ", "  "), "with its blanks twice"},
	}
	for _, invisible := range []struct{ text, name string }{
		{"\u00ad", "soft hyphen"},
		{"\u200b", "zero-width space"},
		{"\u200d", "joiner"},
		{"\u2060", "word joiner"},
		{"\ufeff", "byte order mark"},
		{"\ufe0f", "variation selector"},
		{"\u034f", "grapheme joiner"},
		{"\u200e", "direction mark"},
	} {
		all = append(all, nearMiss{first + invisible.text + tail, "with a " + invisible.name},
			nearMiss{invisible.text + text, "with a " + invisible.name + " at the start"},
			nearMiss{text + invisible.text, "with a " + invisible.name + " at the end"})
	}
	for _, sign := range text {
		if !unicode.IsLetter(sign) && !unicode.IsDigit(sign) {
			all = append(all, nearMiss{strings.ReplaceAll(text, string(sign), wide(string(sign))), "with a full-width sign"})
		}
	}
	for _, pattern := range []string{"*", "%", first + "*", first + "%", start + "_", start + "?", ".*"} {
		all = append(all, nearMiss{pattern, "a pattern"})
	}
	for _, quoted := range []string{
		text + "' OR '1'='1", "' OR '1'='1", text + `" OR "1"="1`, text + "'--", text + "#", text + "/*", "*)(uid=*", text + ")(&", text + "*)(uid=" + text,
	} {
		all = append(all, nearMiss{quoted, "a piece of a query"})
	}
	for _, zero := range []string{"0" + text, "00" + text, "+" + text, text + ".0", text + "e0", strings.TrimLeft(text, "0")} {
		all = append(all, nearMiss{zero, "an equal number"})
	}
	for _, escaped := range escapes(text) {
		all = append(all, nearMiss{escaped, "escaped"})
	}
	for _, folded := range []string{strings.ReplaceAll(text, "-", "_"), strings.ReplaceAll(text, "_", "-"), strings.ReplaceAll(text, "-", "")} {
		all = append(all, nearMiss{folded, "without its hyphens"})
	}
	return all
}

// escapes returns the text with its first character escaped in the ways of URLs, entities,
// JSON, LDAP filters and mail, and as it is in forms.
func escapes(text string) []string {
	first, middle, last := parts(text)
	tail, c := middle+last, []rune(first)[0]
	percent := strings.ReplaceAll(fmt.Sprintf("% X", first), " ", "%")
	return []string{
		"%" + percent + tail, "%" + strings.ToLower(percent) + tail, "%25" + percent + tail,
		url.QueryEscape(text), url.PathEscape(text), strings.ReplaceAll(text, " ", "%20"),
		fmt.Sprintf("&#%d;", c) + tail, html.EscapeString(text),
		fmt.Sprintf(`\u%04x`, c) + tail, `\` + hex.EncodeToString([]byte(first)) + tail, `\` + text, "=" + percent + tail,
		`"` + text + `"`, "'" + text + "'",
	}
}

// addressed returns ids that mean the given one in a path, in a directory or in mail.
func addressed(id string) []nearMiss {
	first, middle, last := parts(id)
	tail := middle + last
	all := []nearMiss{
		{id + "@example.com", "with a realm"},
		{`EXAMPLE\` + id, "with a domain"},
		{"uid=" + id, "as a distinguished name"},
		{"uid=" + id + ",ou=people", "as a distinguished name"},
		{"cn=" + id, "as a distinguished name"},
		{id + ",ou=people", "as a distinguished name"},
		{id + "+uid=x", "as a distinguished name"},
		{id + "," + id, "twice"},
		{strings.ReplaceAll(id, ".", ""), "without its dots"},
		{first + "." + tail, "with a dot"},
		{base64.StdEncoding.EncodeToString([]byte(id)), "in base64"},
		{base64.RawURLEncoding.EncodeToString([]byte(id)), "in base64"},
		{hex.EncodeToString([]byte(id)), "in hexadecimal"},
	}
	if local, domain, found := strings.Cut(id, "@"); found {
		all = append(all, nearMiss{local + "+tag@" + domain, "with a tag"},
			nearMiss{local + "@" + swapCase(domain), "with its domain in the other case"},
			nearMiss{strings.ReplaceAll(local, ".", "") + "@" + domain, "without its dots"},
			nearMiss{local + "@" + domain + ".", "with a final dot"},
			nearMiss{local, "without its realm"})
	}
	for _, suffix := range []string{".", "/", "//", "/.", "/..", `\`, "?", "?x=y", "#", "#x", ";", ";x=y", "&", "&x=y", "+tag", "%00", "%00x", "%20", "%0a", "%2f", "|", "|x"} {
		all = append(all, nearMiss{id + suffix, "with " + suffix})
	}
	for _, prefix := range []string{".", "/", "//", "./", "../", "x/../", `\`, "|"} {
		all = append(all, nearMiss{prefix + id, "with " + prefix})
	}
	return all
}

// wrongEnds returns secrets that are right in a part.
func wrongEnds(h Harness, c Credential) []nearMiss {
	first, middle, last := parts(c.Secret)
	_, n := utf8.DecodeRuneInString(middle)
	all := []nearMiss{
		{other(first) + middle + last, "with another first character"},
		{first + middle + other(last), "with another last character"},
		{first + other(middle[:n]) + middle[n:] + last, "with another second character"},
		{c.Secret + "x", "with another letter at the end"},
		{"x" + c.Secret, "with a letter before it"},
	}
	for _, n := range cuts(c.Secret) {
		all = append(all, nearMiss{c.Secret[:n], fmt.Sprintf("cut after %d bytes", n)},
			nearMiss{c.Secret[:n] + strings.Repeat("~", len(c.Secret)-n), fmt.Sprintf("with other characters after %d bytes", n)})
	}
	return distinct(all, func(secret string) bool { return !isKnown(h, Credential{ID: c.ID, Secret: secret}) })
}

// cuts returns lengths at which hashes, columns and protocols cut secrets.
func cuts(secret string) (all []int) {
	for _, n := range []int{8, 14, 15, 16, 20, 24, 32, 36, 40, 48, 50, 55, 56, 60, 63, 64, 72, 100, 127, 128, 199, 200, 255, 256, 511, 512, 1000, 1023, 1024} {
		if n < len(secret) && utf8.RuneStart(secret[n]) {
			all = append(all, n)
		}
	}
	return all
}

// other returns another character than the given one, and as many bytes, if it has one.
func other(character string) string {
	switch {
	case character == "~":
		return "!"
	case len(character) == 1:
		return "~"
	case character == "":
		return ""
	}
	c, _ := utf8.DecodeRuneInString(character)
	if next := string(c + 1); len(next) == len(character) {
		return next
	}
	return string(c - 1)
}

// encodedSecrets returns spellings of a secret that somebody may decode.
func encodedSecrets(secret string) []nearMiss {
	plain := []byte(secret)
	all := []nearMiss{
		{strings.ReplaceAll(secret, " ", "+"), "with + for blanks"},
		{strings.ToUpper(hex.EncodeToString(plain)), "in hexadecimal"},
		{hex.EncodeToString(plain), "in hexadecimal"},
		{"{CLEARTEXT}" + secret, "as a directory stores it"},
		{"{PLAIN}" + secret, "as a directory stores it"},
		{"plain:" + secret, "as a file stores it"},
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		all = append(all, nearMiss{encoding.EncodeToString(plain), "in base64"})
	}
	var percent strings.Builder
	for _, b := range plain {
		fmt.Fprintf(&percent, "%%%02X", b)
	}
	return append(all, nearMiss{percent.String(), "escaped"})
}

// hashedSecrets returns the hashes of a secret that a verifier may store, in the ways in which
// files and directories write them.
func hashedSecrets(secret string) (all []nearMiss) {
	for _, hash := range plainHashes(secret) {
		text, encoded := hash.hex(), hash.base64()
		for _, stored := range []string{text, strings.ToUpper(text), encoded, hash.name + ":" + text, "{" + strings.ToUpper(hash.name) + "}" + encoded, "{SHA}" + encoded} {
			all = append(all, nearMiss{stored, "hashed with " + hash.name})
		}
	}
	return all
}

// shiftedCredentials returns credentials that equal c when you join id and secret, with or
// without a separator.
func shiftedCredentials(h Harness, c Credential) (shifted []Credential) {
	first, middle, last := parts(c.Secret)
	idStart, idMiddle, idLast := parts(c.ID)
	all := []Credential{
		{ID: c.ID + first, Secret: middle + last},
		{ID: idStart + idMiddle, Secret: idLast + c.Secret},
	}
	isSeparator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if i := strings.IndexFunc(c.Secret, isSeparator); i >= 0 {
		_, n := utf8.DecodeRuneInString(c.Secret[i:])
		all = append(all, Credential{ID: c.ID + c.Secret[i:i+n] + c.Secret[:i], Secret: c.Secret[i+n:]})
	}
	if i := strings.IndexFunc(c.ID, isSeparator); i >= 0 {
		_, n := utf8.DecodeRuneInString(c.ID[i:])
		all = append(all, Credential{ID: c.ID[:i], Secret: c.ID[i+n:] + c.ID[i:i+n] + c.Secret})
	}
	for _, c := range all {
		if c.ID != "" && c.Secret != "" && !strings.Contains(c.ID, ":") && !isKnown(h, c) {
			shifted = append(shifted, c)
		}
	}
	return shifted
}

func swapCase(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, text)
}

// foldLetter replaces a letter by another one that has it as its simple case fold.
func foldLetter(text string) string {
	for _, pair := range [...][2]string{{"s", "ſ"}, {"k", "\u212a"}, {"i", "ı"}} {
		if strings.Contains(text, pair[0]) {
			return strings.Replace(text, pair[0], pair[1], 1)
		}
	}
	return text
}

// accented returns the text with an accent on its first vowel, in one character.
func accented(text string) string {
	if i := strings.IndexAny(text, "aeiou"); i >= 0 {
		return text[:i] + map[byte]string{'a': "á", 'e': "é", 'i': "í", 'o': "ó", 'u': "ú"}[text[i]] + text[i+1:]
	}
	return text
}

// wide returns the text in full-width letters, digits and signs.
func wide(text string) string {
	return strings.Map(func(c rune) rune {
		if '!' <= c && c <= '~' {
			return c - '!' + '\uff01'
		}
		return c
	}, text)
}

func isID(h Harness, id string) bool {
	has := func(c Credential) bool { return c.ID == id }
	return slices.ContainsFunc(h.SignsIn, has) || slices.ContainsFunc(h.Refused, has)
}

func isKnown(h Harness, presented Credential) bool {
	return slices.ContainsFunc(h.SignsIn, func(c Credential) bool {
		return c.ID == presented.ID && c.Secret == presented.Secret
	})
}
