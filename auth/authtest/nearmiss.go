package authtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrongSecrets returns secrets that are nearly right.
func wrongSecrets(h Harness, c Credential) []string {
	near := append([]string{
		c.Secret + "x",
		"x" + c.Secret,
		c.Secret + c.Secret,
		strings.Repeat("x", 1000),
		strings.Repeat("x", 5000),
		c.Secret + strings.Repeat("x", 5000),
		c.ID,
	}, append(nearMisses(c.Secret), hashes(c.Secret)...)...)
	return slices.DeleteFunc(near, func(secret string) bool {
		return secret == "" || isKnown(h, Credential{ID: c.ID, Secret: secret})
	})
}

// unknownIDs returns ids that look like ids of the harness, but aren't.
func unknownIDs(h Harness, id string) []string {
	near := append([]string{
		id + "-unknown",
		"unknown-" + id,
		id + "x",
		escaped(id),
		strings.Repeat("x", 1000),
	}, nearMisses(id)...)
	return slices.DeleteFunc(near, func(id string) bool { return id == "" || isID(h, id) })
}

// hashes returns the plain hashes of a secret that a verifier may store.
func hashes(secret string) []string {
	sum1, sum256, sum512 := sha1.Sum([]byte(secret)), sha256.Sum256([]byte(secret)), sha512.Sum512([]byte(secret))
	var texts []string
	for _, sum := range [][]byte{sum1[:], sum256[:], sum512[:]} {
		plain := hex.EncodeToString(sum)
		texts = append(texts, plain, strings.ToUpper(plain), base64.StdEncoding.EncodeToString(sum))
	}
	return texts
}

// escaped returns the text with its first byte escaped as in a URL.
func escaped(text string) string { return fmt.Sprintf("%%%02X", text[0]) + text[1:] }

// nearMisses returns texts that some verifiers can't tell from the given one: they fold, trim
// or match patterns, or pass it to another language unquoted.
func nearMisses(text string) []string {
	_, first := utf8.DecodeRuneInString(text)
	_, last := utf8.DecodeLastRuneInString(text)
	head, tail := text[:first], text[first:]
	start := text[:len(text)-last]
	return []string{
		start, tail, swapCase(text), strings.ToUpper(text), swapCase(head) + tail, // cut, folded
		text + " ", " " + text, text + "\u00a0", wide(text), head + "\u0301" + tail, text + "\u200b", // trimmed, normalized
		"*", "%", head + "*", head + "%", start + "_", start + "?", ".*", // patterns
		text + "' OR '1'='1", "' OR '1'='1", text + `" OR "1"="1`, text + "'--", "*)(uid=*", text + ")(&", // quotes
	}
}

// shiftedCredentials returns credentials that equal c when you join id and secret.
func shiftedCredentials(h Harness, c Credential) []Credential {
	_, first := utf8.DecodeRuneInString(c.Secret)
	_, last := utf8.DecodeLastRuneInString(c.ID)
	shifted := []Credential{
		{ID: c.ID + c.Secret[:first], Secret: c.Secret[first:]},
		{ID: c.ID[:len(c.ID)-last], Secret: c.ID[len(c.ID)-last:] + c.Secret},
	}
	return slices.DeleteFunc(shifted, func(c Credential) bool {
		return c.ID == "" || c.Secret == "" || isKnown(h, c)
	})
}

func swapCase(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, text)
}

// wide returns the text in full-width letters.
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
