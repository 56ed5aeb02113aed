package authtest_test

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

type verify = func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

// broken is a verifier with one fault, and the name of the case that detects it.
type broken struct {
	name, caught string
	verify       verify
}

const (
	wrongSecrets   = "refuses wrong secrets"
	unknownClients = "refuses unknown clients"
	apart          = "keeps clients apart"
	noSecret       = "errors contain no secret"
	endedContext   = "gives no wrong verdict after the context has ended"
	owner          = "signs in the owner"
	refused        = "refuses disabled clients and retired secrets"
	sameWork       = "does the same work for every refusal"
	concurrent     = "is safe for concurrent use"
	wholeSecrets   = "compares whole secrets"
	outage         = "reports an outage as an outage"
)

// presents makes a verifier that changes the credentials before it checks them.
func (r right) presents(id, secret func(string) string) verify {
	return func(ctx context.Context, presentedID, presented string) (webhookcfg.Client, error) {
		if id != nil {
			presentedID = id(presentedID)
		}
		if secret != nil {
			presented = secret(presented)
		}
		return r.Verify(ctx, presentedID, presented)
	}
}

// matches makes a verifier that accepts what matches a stored secret or an id.
func (r right) matches(match func(stored, presented string) bool) verify {
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		for _, stored := range r.secrets[id] {
			if match(stored, secret) {
				secret = stored
				break
			}
		}
		return r.Verify(ctx, id, secret)
	}
}

// fails makes a verifier whose errors have another text. The credentials are what a caller
// presents, and the stored secret.
func (r right) fails(text func(secret, stored string) string) verify {
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		client, err := r.Verify(ctx, id, secret)
		if err != nil {
			stored := ""
			if len(r.secrets[id]) > 0 {
				stored = r.secrets[id][0]
			}
			err = fmt.Errorf("%w: %s", err, text(secret, stored))
		}
		return client, err
	}
}

// names makes a verifier that names secrets.
func (r right) names(name func(secret string) string) verify {
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		client, err := r.Verify(ctx, id, secret)
		if err == nil {
			client.SecretName = name(secret)
		}
		return client, err
	}
}

// remembers makes a verifier that keeps each result under a key, if keep says so.
func (r right) remembers(key func(id, secret string) string, keep func(error) bool) verify {
	type result struct {
		client webhookcfg.Client
		err    error
	}
	var results sync.Map
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		if found, ok := results.Load(key(id, secret)); ok {
			return found.(result).client, found.(result).err
		}
		client, err := r.Verify(ctx, id, secret)
		if err == nil {
			err = ctx.Err()
		}
		if keep(err) {
			results.Store(key(id, secret), result{client, err})
		}
		return client, err
	}
}

func without(characters string) func(string) string {
	return func(text string) string {
		return strings.Map(func(c rune) rune {
			if strings.ContainsRune(characters, c) {
				return -1
			}
			return c
		}, text)
	}
}

func before(separators string) func(string) string {
	return func(text string) string {
		if i := strings.IndexAny(text, separators); i > 0 {
			return text[:i]
		}
		return text
	}
}

func after(separators string) func(string) string {
	return func(text string) string { return text[strings.LastIndexAny(text, separators)+1:] }
}

func replacing(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// decoded ignores errors, as a lenient proxy does.
func decoded(decode func(string) (string, error)) func(string) string {
	return func(text string) string {
		if plain, err := decode(text); err == nil {
			return plain
		}
		return text
	}
}

func fromBytes(decode func(string) ([]byte, error)) func(string) string {
	return decoded(func(text string) (string, error) {
		plain, err := decode(text)
		return string(plain), err
	})
}

// brokenDirectories are mistakes of verifiers in front of a directory service, such as LDAP.
func brokenDirectories(r right) []broken {
	const invisible = "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f\u200e\u034f"
	fold := func(text string) string { return strings.ToLower(strings.ToUpper(text)) } // also ſ, K, ı
	return []broken{
		{"refuses if the deadline has passed", endedContext, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		}},
		{"signs in everybody if the deadline has passed", endedContext, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return webhookcfg.Client{ID: cmp.Or(r.owners[id], id)}, nil
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses if the deadline passes midway", endedContext, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, err
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses if the directory is slower than the deadline", endedContext, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			const takes = 10 * time.Millisecond
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, err
			}
			end, found := ctx.Deadline() // for the connection
			if found && time.Until(end) < takes {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			time.Sleep(takes)
			return r.Verify(ctx, id, secret)
		}},
		{"folds the case of ids beyond ASCII", unknownClients, r.presents(func(id string) string {
			if strings.IndexFunc(id, func(c rune) bool { return c > unicode.MaxASCII }) < 0 {
				return id
			}
			return fold(id)
		}, nil)},
		{"folds the case of an id's last letter", unknownClients, r.presents(func(id string) string {
			return id[:len(id)-1] + strings.ToLower(id[len(id)-1:])
		}, nil)},
		{"takes a full-width dot for a dot", unknownClients, r.presents(replacing("．", "."), nil)},
		{"takes an ideographic full stop for a dot", unknownClients, r.presents(replacing("。", "."), nil)},
		{"takes a full-width hyphen in secrets for a hyphen", wrongSecrets, r.presents(nil, replacing("－", "-"))},
		{"folds ß and ss", unknownClients, r.presents(replacing("ß", "ss"), nil)},
		{"ignores accents of ids", unknownClients, r.presents(replacing("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ý", "y", "ĺ", "l", "ŕ", "r"), nil)},
		{"ignores soft hyphens in ids", unknownClients, r.presents(without("\u00ad"), nil)},
		{"ignores joiners in ids", unknownClients, r.presents(without("\u200c\u200d\u2060"), nil)},
		{"ignores a byte order mark before ids", unknownClients, r.presents(func(id string) string { return strings.TrimPrefix(id, "\ufeff") }, nil)},
		{"ignores variation selectors in ids", unknownClients, r.presents(without("\ufe0f\u034f"), nil)},
		{"ignores direction marks in ids", unknownClients, r.presents(without("\u200e\u200f\u202a\u202c"), nil)},
		{"ignores what's invisible in secrets", wrongSecrets, r.presents(nil, without(invisible))},
		{"ignores leading zeros of ids", unknownClients, r.presents(func(id string) string { return strings.TrimLeft(id, "0") }, nil)},
		{"parses ids as numbers", unknownClients, r.presents(func(id string) string {
			if n, err := strconv.ParseFloat(id, 64); err == nil {
				return strconv.FormatFloat(n, 'f', -1, 64)
			}
			return id
		}, nil)},
		{"ignores a final dot of ids", unknownClients, r.presents(func(id string) string { return strings.TrimSuffix(id, ".") }, nil)},
		{"strips a realm of ids", unknownClients, r.presents(func(id string) string { return strings.TrimSuffix(id, "@example.com") }, nil)},
		{"strips a domain of ids", unknownClients, r.presents(after(`\`), nil)},
		{"takes the name of a distinguished name", unknownClients, r.presents(func(id string) string { return strings.TrimPrefix(before(",")(id), "uid=") }, nil)},
		{"takes the first of several names", unknownClients, r.presents(before("+,"), nil)},
		{"unescapes ids as in filters", unknownClients, r.presents(func(id string) string {
			if len(id) > 3 && id[0] == '\\' {
				if c, err := hex.DecodeString(id[1:3]); err == nil {
					return string(c) + id[3:]
				}
			}
			return id
		}, nil)},
		{"cuts ids at the size of a column", unknownClients, r.presents(func(id string) string {
			return strings.TrimRight(id[:min(len(id), 255)], " ")
		}, nil)},
		{"binds anonymously without a secret", wrongSecrets, r.matches(func(_, presented string) bool { return strings.TrimSpace(presented) == "" })},
		{"binds anonymously without a visible secret", wrongSecrets, r.matches(func(_, presented string) bool {
			return without(invisible+" ")(presented) == ""
		})},
		{"accepts the stored form of a secret", wrongSecrets, r.matches(func(stored, presented string) bool {
			sum := sha1.Sum([]byte(stored))
			return presented == "{SHA}"+base64.StdEncoding.EncodeToString(sum[:]) || presented == "{CLEARTEXT}"+stored
		})},
		{"accepts a stored hash with its prefix", wrongSecrets, r.matches(func(stored, presented string) bool {
			return presented == fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(stored)))
		})},
		{"compares the first eight bytes", wrongSecrets, r.matches(func(stored, presented string) bool {
			return len(presented) >= 8 && strings.HasPrefix(stored, presented[:8])
		})},
		{"compares the first and the last byte and the length", wrongSecrets, r.matches(func(stored, presented string) bool {
			return len(stored) == len(presented) && stored[0] == presented[0] && stored[len(stored)-1] == presented[len(stored)-1]
		})},
		{"compares 72 bytes", wholeSecrets, r.matches(func(stored, presented string) bool {
			return len(stored) >= 72 && strings.HasPrefix(presented, stored[:72])
		})},
		{"compares 256 bytes", wholeSecrets, r.matches(func(stored, presented string) bool {
			return len(stored) >= 256 && strings.HasPrefix(presented, stored[:256])
		})},
	}
}

// brokenGateways are mistakes of verifiers that get the credentials from a gateway, or pass
// them on to a service over HTTP.
func brokenGateways(r right) []broken {
	return []broken{
		{"cleans ids like paths", unknownClients, r.presents(path.Clean, nil)},
		{"trims slashes of ids", unknownClients, r.presents(func(id string) string { return strings.Trim(id, "/") }, nil)},
		{"trims a final slash of ids", unknownClients, r.presents(func(id string) string { return strings.TrimSuffix(id, "/") }, nil)},
		{"trims backslashes of ids", unknownClients, r.presents(func(id string) string { return strings.Trim(id, `\`) }, nil)},
		{"cuts ids at a query", unknownClients, r.presents(before("?"), nil)},
		{"cuts ids at a fragment", unknownClients, r.presents(before("#"), nil)},
		{"cuts ids at a parameter", unknownClients, r.presents(before(";"), nil)},
		{"cuts ids at an ampersand", unknownClients, r.presents(before("&"), nil)},
		{"cuts ids at an escaped NUL", unknownClients, r.presents(func(id string) string { id, _, _ = strings.Cut(id, "%00"); return id }, nil)},
		{"unescapes ids twice", unknownClients, r.presents(func(id string) string {
			if once := decoded(url.PathUnescape)(id); strings.Contains(once, "%") {
				return decoded(url.PathUnescape)(once)
			}
			return id
		}, nil)},
		{"unescapes entities in ids", unknownClients, r.presents(html.UnescapeString, nil)},
		{"decodes ids in base64", unknownClients, r.presents(fromBytes(base64.StdEncoding.DecodeString), nil)},
		{"unescapes secrets", wrongSecrets, r.presents(nil, decoded(url.PathUnescape))},
		{"unescapes a plus in secrets", wrongSecrets, r.presents(nil, replacing("+", " "))},
		{"unescapes entities in secrets", wrongSecrets, r.presents(nil, html.UnescapeString)},
		{"unquotes secrets", wrongSecrets, r.presents(nil, decoded(strconv.Unquote))},
		{"unquotes secrets in apostrophes", wrongSecrets, r.presents(nil, func(s string) string { return strings.Trim(s, "'") })},
		{"unescapes secrets as in JSON", wrongSecrets, r.presents(nil, decoded(func(s string) (string, error) { return strconv.Unquote(`"` + s + `"`) }))},
		{"decodes secrets in base64", wrongSecrets, r.presents(nil, fromBytes(base64.StdEncoding.DecodeString))},
		{"decodes secrets in base64 without padding", wrongSecrets, r.presents(nil, fromBytes(base64.RawURLEncoding.DecodeString))},
		{"decodes secrets in hexadecimal", wrongSecrets, r.presents(nil, fromBytes(hex.DecodeString))},
		{"accepts an object for a secret", wrongSecrets, r.matches(func(_, presented string) bool { return strings.HasPrefix(presented, `{"$`) })},
		{"accepts null for a secret", wrongSecrets, r.matches(func(_, presented string) bool { return presented == "null" })},
		{"ignores blanks in secrets", wrongSecrets, r.presents(nil, without(" "))},
		{"ignores hyphens in secrets", wrongSecrets, r.matches(func(stored, presented string) bool {
			return without("-")(stored) == without("-")(presented)
		})},
	}
}

// brokenCaches are mistakes of verifiers that remember results or share checks.
func brokenCaches(r right) []broken {
	byID := func(id, _ string) string { return id }
	signedIn := func(err error) bool { return err == nil }
	refused := func(err error) bool { return errors.Is(err, webhookcfg.ErrInvalidCredentials) }
	return []broken{
		{"remembers ids that signed in", wrongSecrets, r.remembers(byID, signedIn)},
		{"remembers ids that were refused", wrongSecrets, r.remembers(byID, refused)},
		{"remembers secrets that signed in", unknownClients, r.remembers(func(_, secret string) string { return secret }, signedIn)},
		{"remembers secrets that were refused", unknownClients, r.remembers(func(_, secret string) string { return secret }, refused)},
		{"remembers pairs joined with a hyphen", apart, r.remembers(func(id, secret string) string { return id + "-" + secret }, signedIn)},
		{"remembers pairs joined with a blank", apart, r.remembers(func(id, secret string) string { return id + " " + secret }, signedIn)},
		{"remembers the length of secrets", wrongSecrets, r.remembers(func(id, secret string) string { return fmt.Sprint(id, len(secret)) }, signedIn)},
		{"remembers that contexts ended", endedContext, r.remembers(func(id, secret string) string { return id + "\x00" + secret }, func(err error) bool {
			return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		})},
		{"shares the end of the first caller's context", concurrent, sharesChecks(r)},
	}
}

// sharesChecks makes one check of all concurrent ones with the same credentials, with the
// context of the first caller.
func sharesChecks(r right) verify {
	type check struct {
		done   chan struct{}
		client webhookcfg.Client
		err    error
	}
	var (
		mu     sync.Mutex
		checks = make(map[[2]string]*check)
	)
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		key := [2]string{id, secret}
		mu.Lock()
		c, shared := checks[key]
		if !shared {
			c = &check{done: make(chan struct{})}
			checks[key] = c
		}
		mu.Unlock()
		if shared {
			<-c.done
			return c.client, c.err
		}
		select {
		case <-time.After(time.Millisecond): // the directory
			c.client, c.err = r.Verify(ctx, id, secret)
		case <-ctx.Done():
			c.err = ctx.Err()
		}
		mu.Lock()
		delete(checks, key)
		mu.Unlock()
		close(c.done)
		return c.client, c.err
	}
}

// brokenProxies are mistakes of identity proxies, which know people and tell more than they
// should.
func brokenProxies(r right) []broken {
	prefix := func(text string, n int) string { return text[:min(n, len(text))] }
	return []broken{
		{"ignores dots in ids", unknownClients, r.presents(func(id string) string {
			local, domain, _ := strings.Cut(id, "@")
			for known := range r.secrets {
				if l, d, _ := strings.Cut(known, "@"); d == domain && without(".")(l) == without(".")(local) {
					return known
				}
			}
			return id
		}, nil)},
		{"ignores a tag after a plus", unknownClients, r.presents(func(id string) string { local, _, _ := strings.Cut(id, "+"); return local }, nil)},
		{"takes an underscore for a hyphen", unknownClients, r.presents(replacing("_", "-"), nil)},
		{"folds the case of a domain", unknownClients, r.presents(func(id string) string {
			local, domain, found := strings.Cut(id, "@")
			if found {
				local += "@" + strings.ToLower(domain)
			}
			return local
		}, nil)},
		{"takes six digits for a code", wrongSecrets, r.matches(func(stored, presented string) bool {
			code, found := strings.CutPrefix(presented, stored)
			return found && len(code) == 6 && strings.Trim(code, "0123456789") == ""
		})},
		{"takes what follows a comma for a code", wrongSecrets, r.matches(func(stored, presented string) bool {
			return strings.HasPrefix(presented, stored+",")
		})},
		{"names the secret after its first half", owner, r.names(func(secret string) string { return prefix(secret, (len(secret)+1)/2) })},
		{"names the secret after its second half", owner, r.names(func(secret string) string { return "…" + secret[len(secret)/2:] })},
		{"names the secret after the start of its hash", owner, r.names(func(secret string) string {
			sum := sha256.Sum256([]byte(secret))
			return "key " + hex.EncodeToString(sum[:6])
		})},
		{"names the secret in capital letters", owner, r.names(strings.ToUpper)},
		{"wraps an error that quotes the secret", noSecret, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil {
				err = &hidden{fmt.Errorf("%w: %s", err, secret)}
			}
			return client, err
		}},
		{"quotes the secret as bytes", noSecret, r.fails(func(secret, _ string) string { return fmt.Sprint([]byte(secret)) })},
		{"quotes the secret as a Go value", noSecret, r.fails(func(secret, _ string) string { return fmt.Sprintf("%#v", []byte(secret)) })},
		{"quotes the secret as JSON numbers", noSecret, r.fails(func(secret, _ string) string {
			return strings.ReplaceAll(fmt.Sprint([]byte(secret)), " ", ",")
		})},
		{"quotes the secret in upper-case hexadecimal", noSecret, r.fails(func(secret, _ string) string { return fmt.Sprintf("%X", secret) })},
		{"quotes the secret in hexadecimal with blanks", noSecret, r.fails(func(secret, _ string) string { return fmt.Sprintf("% x", secret) })},
		{"quotes the secret but its last byte", noSecret, r.fails(func(secret, _ string) string { return secret[:len(secret)-1] + "*" })},
		{"quotes the secret but its first byte", noSecret, r.fails(func(secret, _ string) string { return "*" + secret[1:] })},
		{"quotes the first bytes of the secret", noSecret, r.fails(func(secret, _ string) string { return prefix(secret, 10) + "…" })},
		{"quotes the secret in capital letters", noSecret, r.fails(func(secret, _ string) string { return strings.ToUpper(secret) })},
		{"quotes the secret backwards", noSecret, r.fails(func(secret, _ string) string {
			b := []byte(secret)
			slices.Reverse(b)
			return string(b)
		})},
		{"quotes a hash of the secret in part", noSecret, r.fails(func(secret, _ string) string {
			return fmt.Sprintf("%.12x…", sha256.Sum256([]byte(secret)))
		})},
		{"quotes most of the stored secret", noSecret, r.fails(func(_, stored string) string { return prefix(stored, len(stored)-2) })},
		{"quotes the start of the credentials in base64", noSecret, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil {
				all := base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
				err = fmt.Errorf("%w: Basic %s…", err, all[:len(all)*3/4])
			}
			return client, err
		}},
		{"works more for another client's secret", sameWork, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for _, secrets := range r.secrets {
				if slices.Contains(secrets, secret) {
					r.work.Add(1)
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"works more for each byte that is right", sameWork, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for _, stored := range r.secrets[id] {
				for i := range min(len(stored), len(secret)) {
					if stored[i] != secret[i] {
						break
					}
					r.work.Add(1)
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"works less for secrets of another length", sameWork, func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if stored := r.secrets[id]; len(stored) > 0 && len(stored[0]) != len(secret) {
				r.work.Add(-5)
			}
			return r.Verify(ctx, id, secret)
		}},
	}
}

// hidden is an error that shows nothing of its cause.
type hidden struct{ cause error }

func (*hidden) Error() string   { return "refused" }
func (h *hidden) Unwrap() error { return h.cause }

// TestOutages: what a verifier must not do while its directory is down.
func TestOutages(t *testing.T) {
	down := errors.New("connection refused")
	for name, verify := range map[string]verify{
		"refuses": func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, fmt.Errorf("%w: %w", webhookcfg.ErrInvalidCredentials, down)
		},
		"refuses unknown ids": func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
			if strings.Contains(id, "unknown") {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return webhookcfg.Client{}, down
		},
		"signs in": func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: id}, nil
		},
		"returns a client": func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: id}, down
		},
		"panics": func(context.Context, string, string) (webhookcfg.Client, error) { panic(down) },
		"quotes the secret": func(_ context.Context, _, secret string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, fmt.Errorf("bind(%q): %w", secret, down)
		},
	} {
		h, _ := harness()
		h.Unavailable = auth.Func(verify)
		if err := caseNamed(t, outage).Check(t.Context(), h); err == nil || errors.Is(err, authtest.ErrAbsent) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestUnusualVerifiers: the suite has nothing against verifiers that are correct, but unusual.
func TestUnusualVerifiers(t *testing.T) {
	h, r := harness()
	for name, verify := range map[string]verify{
		"refuses odd ids without looking them up": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if strings.ContainsFunc(id, func(c rune) bool { return c > unicode.MaxASCII || strings.ContainsRune(` */%\'"`, c) }) {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		},
		"refuses long secrets without hashing them": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if len(secret) > len(long) {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		},
		"works longer for longer secrets": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			r.work.Add(int64(len(secret)))
			return r.Verify(ctx, id, secret)
		},
		"fails if the context has ended": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, fmt.Errorf("asking the directory about %q: %w", id, err)
			}
			return r.Verify(ctx, id, secret)
		},
		"names the id and the reason": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil {
				err = fmt.Errorf("%w: no secret for client %q in realm 2026, request %x", err, id, sha256.Sum256([]byte(id)))
			}
			return client, err
		},
		"has words of secrets in names": r.names(func(secret string) string {
			if strings.HasPrefix(secret, "old-") {
				return "old-secret"
			}
			return "secret 2026"
		}),
		"remembers what signed in": r.remembers(func(id, secret string) string { return fmt.Sprint(len(id)) + id + secret }, func(err error) bool { return err == nil }),
		"takes a while": func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			select {
			case <-time.After(10 * time.Millisecond):
				return r.Verify(ctx, id, secret)
			case <-ctx.Done():
				return webhookcfg.Client{}, ctx.Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { h.Verifier = auth.Func(verify); passes(t, h) })
		})
	}
}

// TestUnusualCredentials: the suite can be used with all kinds of ids and secrets. It never
// presents anything that the handler wouldn't pass on.
func TestUnusualCredentials(t *testing.T) {
	signsIn := []authtest.Credential{
		{ID: "0", Secret: "0"},
		{ID: "007", Secret: "secret"},
		{ID: "7", Secret: "password"},
		{ID: "x", Secret: "~~~~~~~~~~"},
		{ID: "*", Secret: "100% of it, and + 50"},
		{ID: "ACME", Secret: "ACME"},
		{ID: "acme", Secret: ":starts with a colon"},
		{ID: "acme.", Secret: "acme"},
		{ID: "acme/", Secret: "acme/acme/acme"},
		{ID: "no one", Secret: "  blanks  "},
		{ID: "ключ", Secret: "пароль, который длиннее"},
		{ID: "😀", Secret: "😀😀😀"},
		{ID: "client-4711", Secret: "client-4711"},
		{ID: "client-4711", Secret: "client-4712"},
		{ID: "long", Secret: strings.Repeat("é", 600)},
		{ID: "%", Secret: "%41%42%43%44%45"},
	}
	for i := range signsIn {
		signsIn[i].Owner = "owner of " + signsIn[i].ID
	}
	verify := func(_ context.Context, id, secret string) (webhookcfg.Client, error) {
		for _, text := range []string{id, secret} {
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
				t.Errorf("presented %q with %q", id, secret)
			}
		}
		if strings.Contains(id, ":") {
			t.Errorf("presented the id %q", id)
		}
		if !slices.Contains(signsIn, authtest.Credential{ID: id, Secret: secret, Owner: "owner of " + id}) {
			return webhookcfg.Client{}, fmt.Errorf("%w: %q", webhookcfg.ErrInvalidCredentials, id)
		}
		return webhookcfg.Client{ID: "owner of " + id, SecretName: "the secret of " + id}, nil
	}
	passes(t, authtest.Harness{Verifier: auth.Func(verify), SignsIn: signsIn})
}

// passes checks that a verifier passes all cases that aren't absent.
func passes(t *testing.T, h authtest.Harness) {
	t.Helper()
	for _, c := range authtest.Cases() {
		if err := c.Check(t.Context(), h); err != nil && !errors.Is(err, authtest.ErrAbsent) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
