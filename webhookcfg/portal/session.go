package portal

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// SignIn are the options of a sign-in with a client's id and secret. The zero value is usable.
//
// A browser keeps both in a cookie, which is sealed with AES-GCM. The handler verifies them
// again on each request, so a secret that you revoke ends the session, and there is no table of
// sessions. Put the Cache of package auth around a slow verifier.
//
// A cookie is valid for 8 hours at most, and for one run of the browser. A stolen cookie is
// worth the secret until then, or until you rotate the secret: don't log cookies.
type SignIn struct {
	// Keys seal the cookies: the first one those of new sign-ins, while all of them open
	// theirs. Each has 32 random bytes. Share them between replicas, and keep the previous one
	// for 8 hours to rotate. If empty, a random key is made, and sessions end with the process.
	Keys [][]byte

	// Name tells the cookies of portals on one host name apart, and one portal doesn't accept
	// another's. It has letters, digits and hyphens, and defaults to "webhooks".
	Name string
}

const (
	// maxCookie is the longest value that all browsers keep, with name and attributes.
	maxCookie  = 3800
	maxSession = 8 * time.Hour
)

var cookieName = regexp.MustCompile(`^[A-Za-z0-9-]{0,64}$`)

// seal seals and opens the credentials in a cookie.
type seal struct {
	cookie string // the name, which is sealed too
	keys   []cipher.AEAD
}

func newSeal(s *SignIn) (seal, error) {
	if !cookieName.MatchString(s.Name) {
		return seal{}, errors.New("portal: SignIn.Name, want letters, digits and hyphens")
	}
	sealed := seal{cookie: "__Host-" + cmp.Or(s.Name, "webhooks")}
	keys := s.Keys
	if len(keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		keys = [][]byte{key}
	}
	for i, key := range keys {
		if len(key) != 32 {
			return seal{}, fmt.Errorf("portal: SignIn.Keys[%d] has %d bytes, want 32", i, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return seal{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return seal{}, err
		}
		sealed.keys = append(sealed.keys, aead)
	}
	return sealed, nil
}

// seal returns the cookie of a session that ends at a time.
func (s seal) seal(id, secret string, until time.Time) *http.Cookie {
	text := strconv.FormatInt(until.Unix(), 10) + ":" + id + ":" + secret // an id has no colon
	value := s.keys[0].Seal(nil, nil, []byte(text), []byte(s.cookie))
	return s.new(base64.RawURLEncoding.EncodeToString(value), 0)
}

// open returns the credentials in the cookie of a session that has not ended.
func (s seal) open(r *http.Request, now time.Time) (id, secret string, ok bool) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return "", "", false
	}
	value, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return "", "", false
	}
	for _, key := range s.keys {
		text, err := key.Open(nil, nil, value, []byte(s.cookie))
		if err != nil {
			continue
		}
		until, pair, _ := strings.Cut(string(text), ":")
		seconds, err := strconv.ParseInt(until, 10, 64)
		if err != nil || now.Unix() >= seconds {
			return "", "", false
		}
		return strings.Cut(pair, ":")
	}
	return "", "", false
}

// new returns a cookie with a value. Browsers send it to this host name only, to no script, and
// from links on other sites but not from their forms.
func (s seal) new(value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: s.cookie, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge}
}

// enter finds the client that a request acts for. If there is none, it responds with where to
// sign in, and keeps what was typed.
func (v *visit) enter() bool {
	if v.Options.Client != nil {
		client, actor, err := v.Options.Client(v.r)
		switch {
		case err != nil:
			v.log("session", err, webhookcfg.Webhook{})
			v.gate(unavailable)
		case client == "":
			v.askToSignIn(problem{status: http.StatusForbidden, key: "session.none"})
		default:
			v.signedIn(client, actor)
			return true
		}
		return false
	}
	id, secret, ok := v.seal.open(v.r, time.Now())
	if !ok {
		v.askToSignIn(v.noSession())
		return false
	}
	err := v.verify(id, secret)
	if errors.Is(err, webhookcfg.ErrInvalidCredentials) {
		http.SetCookie(v.w, v.seal.new("", -1))
		v.askToSignIn(problem{status: http.StatusForbidden, key: "session.revoked"})
	} else if err != nil {
		v.gate(err)
	}
	return err == nil
}

// noSession returns why a request has no session: nothing is wrong if it is the first one.
func (v *visit) noSession() problem {
	why := problem{status: http.StatusForbidden}
	_, err := v.r.Cookie(v.seal.cookie)
	switch {
	case err == nil:
		why.key = "session.ended"
		http.SetCookie(v.w, v.seal.new("", -1))
	case v.r.URL.Query().Has("signed-in"):
		why.key = "session.cookie"
	case v.IsAgain:
		why.key = "session.none"
	}
	return why
}

// verify has the handler verify credentials.
func (v *visit) verify(id, secret string) error {
	ctx := webhookcfg.ContextWithActor(v.ctx, id)
	client, err := v.handler.SignIn(ctx, id, secret)
	if err == nil {
		v.signedIn(client.ID, id)
	}
	return err
}

// signedIn lets the request act for a client.
func (v *visit) signedIn(client, actor string) {
	v.client, v.Person = client, cmp.Or(actor, client)
	v.ctx = webhookcfg.ContextWithActor(v.ctx, actor)
}

// signIn starts a session. Then it shows the page that was asked for. It doesn't make a change
// that was typed before, but shows the form with it.
func (v *visit) signIn() {
	id, secret := v.typed("username"), v.typed("password")
	v.Path = v.typed("then")
	then, ok := v.actions[v.Path]
	v.IsAgain = v.r.PostForm.Has("again") && then.change != nil
	if !ok || v.Options.SignIn == nil {
		v.gate(notFound)
		return
	}
	cookie := v.seal.seal(id, secret, time.Now().Add(maxSession))
	if len(cookie.String()) > maxCookie {
		v.askToSignIn(problem{status: http.StatusBadRequest, key: "session.long"})
		return
	}
	if err := v.verify(id, secret); err != nil {
		v.askToSignIn(err)
		return
	}
	http.SetCookie(v.w, cookie)
	if v.IsAgain {
		v.Done = "done.sign-in"
		v.show()
		return
	}
	v.redirect(v.location(v.Path, "signed-in"))
}

func (v *visit) signOut() {
	if v.Options.SignIn != nil {
		http.SetCookie(v.w, v.seal.new("", -1))
	}
	v.redirect("./")
}
