package authtest

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// containsNoSecret presents a random secret, so that even a small part of it is no coincidence.
func containsNoSecret(ctx context.Context, h Harness) error {
	const marker = "Xq7Zk2vR9wLmT4yBc8NsJd3HfP6gQe5A"
	canceled, late := endedContexts(ctx)
	for i, c := range h.SignsIn {
		for _, ctx := range []context.Context{ctx, canceled, late} {
			for _, id := range []string{c.ID, unknownIDs(h, c.ID)[0].text} {
				presented := Credential{ID: id, Secret: marker}
				_, err := verify(ctx, h.Verifier, presented)
				if quotes(err, presented, true) {
					return errors.New("error contains the presented secret, a part of it, or a hash of it")
				}
				if quotes(err, c, false) {
					return fmt.Errorf("error contains the secret of credential %d, which was not presented, or half of it, or a hash of it", i)
				}
			}
			if _, err := verify(ctx, h.Verifier, c); quotes(err, c, false) {
				return fmt.Errorf("error contains the secret of credential %d, half of it, or a hash of it", i)
			}
		}
	}
	for i, c := range h.Refused {
		if _, err := verify(ctx, h.Verifier, c); quotes(err, c, false) {
			return fmt.Errorf("error contains the secret of credential %d of Harness.Refused, half of it, or a hash of it", i)
		}
	}
	return nil
}

// fragment is how many consecutive bytes of a random text are no coincidence.
const fragment = 8

// quotes reports whether an error, or one that it wraps, contains a part of the secret.
func quotes(err error, c Credential, isRandom bool) bool {
	for _, err := range tree(err) {
		if leaks(fmt.Sprintf("%v %+v %#v", err, err, err), c, isRandom) {
			return true
		}
	}
	return false
}

// tree returns an error and all that it wraps.
func tree(err error) []error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, tree(err)...)
		}
	}
	return append(all, tree(errors.Unwrap(err))...)
}

// leaks reports whether a text contains a secret, or enough of it to help somebody guess. A
// plain hash helps as much as the secret. Words of a secret that somebody chose occur in other
// texts, too, so half of it must be there, unless it's random.
func leaks(text string, c Credential, isRandom bool) bool {
	for _, hash := range plainHashes(c.Secret) {
		if overlap(text, hash.hex(), fragment) || overlap(text, hash.base64(), fragment) {
			return true
		}
	}
	if len(c.Secret) < fragment {
		return false // it can occur by chance
	}
	for _, form := range forms(c) {
		if overlap(text, form, partOf(form, c.Secret, isRandom)) {
			return true
		}
	}
	if strings.Contains(c.ID, c.Secret) || strings.Contains(c.Owner, c.Secret) {
		return false // which anybody can see
	}
	if strings.Contains(text, c.Secret) {
		return true
	}
	for _, name := range []string{c.ID, c.Owner} {
		if len(name) >= fragment {
			text = strings.ReplaceAll(text, name, "\n")
		}
	}
	return overlap(text, c.Secret, partOf(c.Secret, c.Secret, isRandom))
}

// partOf returns how many bytes of a form of the secret must not occur.
func partOf(form, secret string, isRandom bool) int {
	if isRandom {
		return max(fragment, 5*len(form)/len(secret))
	}
	return max(fragment, (len(form)+1)/2)
}

// forms returns other spellings of a secret that a text can contain.
func forms(c Credential) []string {
	plain := []byte(c.Secret)
	backwards := slices.Clone(plain)
	slices.Reverse(backwards)
	decimal := strings.Trim(fmt.Sprint(plain), "[]")
	all := []string{
		string(backwards), decimal, strings.ReplaceAll(decimal, " ", ","), strings.ReplaceAll(decimal, " ", ", "),
		hex.EncodeToString(plain), fmt.Sprintf("% x", plain), strings.ReplaceAll(fmt.Sprintf("% #x", plain), " ", ", "),
	}
	for _, escaped := range []string{strings.Trim(strconv.Quote(c.Secret), `"`), url.QueryEscape(c.Secret), url.PathEscape(c.Secret)} {
		if escaped != c.Secret {
			all = append(all, escaped)
		}
	}
	name := len(c.ID) + 1
	credentials := []byte(c.ID + ":" + c.Secret)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, encoding.EncodeToString(plain), encoding.EncodeToString(credentials)[(name*8+5)/6:])
	}
	return all
}

// plainHash is a hash of a secret that a verifier may store.
type plainHash struct {
	name string
	sum  []byte
}

func (h plainHash) hex() string    { return hex.EncodeToString(h.sum) }
func (h plainHash) base64() string { return base64.StdEncoding.EncodeToString(h.sum) }

func plainHashes(secret string) []plainHash {
	plain := []byte(secret)
	sum5, sum1, sum256, sum512 := md5.Sum(plain), sha1.Sum(plain), sha256.Sum256(plain), sha512.Sum512(plain)
	return []plainHash{{"md5", sum5[:]}, {"sha1", sum1[:]}, {"sha256", sum256[:]}, {"sha512", sum512[:]}}
}

// overlap reports whether a text contains n consecutive bytes of a form, in any letter case.
func overlap(text, form string, n int) bool {
	text, form = strings.ToLower(text), strings.ToLower(form)
	parts := make(map[string]bool)
	for end := n; end <= len(form); end++ {
		parts[form[end-n:end]] = true
	}
	for end := n; end <= len(text); end++ {
		if parts[text[end-n:end]] {
			return true
		}
	}
	return false
}
