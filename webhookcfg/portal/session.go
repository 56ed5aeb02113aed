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
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// SignIn lets people sign in with a client's id and secret. The zero SignIn is fine for one
// process. A host name can have only one portal with a SignIn, since a second one would
// replace its cookie.
//
// The browser keeps the id and the secret in a cookie that is sealed with AES-GCM. The portal
// has no table of sessions: the handler verifies the cookie's secret again on each request, so
// if you revoke a secret, its sessions end. If your verifier is slow or limits failed sign-ins,
// put an [example.com/go-webhookcfg/auth.Cache] around it. Then a session also goes on while
// somebody at the same address guesses secrets.
//
// People can type the secret into the field for the id. Set
// [webhookcfg.Options.OmitPresentedID], so that no event shows it.
//
// A cookie is valid until the browser closes, and for at most 8 hours. Until those are over,
// or you rotate the secret, a stolen cookie is as good as the secret. Don't log cookies.
type SignIn struct {
	// Keys seal the cookies. Each has 32 random bytes. New sign-ins use the first key, and a
	// cookie sealed with any of them is accepted. If you have several replicas, give all of
	// them the same keys.
	//
	// To rotate, add the new key behind the present one. Once all replicas have it, put it first,
	// and remove the previous one 8 hours later.
	//
	// By default the portal makes a random key, and sessions end with the process.
	Keys [][]byte
}

const (
	// maxCookie is the longest cookie that all browsers keep, with its name and attributes.
	maxCookie  = 3800
	maxSession = 8 * time.Hour
)

// sessionCookie has the sealed id and secret. The prefix keeps the cookie from being set by
// other hosts and over http.
const sessionCookie = "__Host-webhooks"

// seal seals and opens the credentials in a cookie. The first key seals.
type seal []cipher.AEAD

func newSeal(s *SignIn) (seal, error) {
	keys := s.Keys
	if len(keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		keys = [][]byte{key}
	}
	var sealed seal
	for i, key := range keys {
		if len(key) != 32 {
			return nil, fmt.Errorf("portal: SignIn.Keys[%d] has %d bytes, want 32", i, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		sealed = append(sealed, aead)
	}
	return sealed, nil
}

// seal returns the cookie of a session that ends at the given time.
func (s seal) seal(id, secret string, until time.Time) *http.Cookie {
	text := strconv.FormatInt(until.Unix(), 10) + ":" + id + ":" + secret // an id has no colon
	value := s[0].Seal(nil, nil, []byte(text), []byte(sessionCookie))
	return newCookie(sessionCookie, base64.RawURLEncoding.EncodeToString(value), 0)
}

// open returns the id and the secret from the cookie, if the session hasn't ended.
func (s seal) open(r *http.Request, now time.Time) (id, secret string, ok bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || len(cookie.Value) > maxCookie { // which is work for nothing
		return "", "", false
	}
	value, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return "", "", false
	}
	for _, key := range s {
		text, err := key.Open(nil, nil, value, []byte(sessionCookie))
		if err != nil {
			continue
		}
		until, pair, _ := strings.Cut(string(text), ":")
		seconds, err := strconv.ParseInt(until, 10, 64)
		if err != nil || now.Unix() >= seconds {
			return "", "", false
		}
		id, secret, ok := strings.Cut(pair, ":")
		return strings.Clone(id), secret, ok // an event can keep the id
	}
	return "", "", false
}

// enter finds the client that a request acts for. If there is none, the error asks the person
// to sign in.
func (v *visit) enter() error {
	if v.Options.Client != nil {
		var client, actor string
		err := v.call("Options.Client", func() (err error) {
			client, actor, err = v.Options.Client(v.r.WithContext(v.ctx))
			return err
		})
		if err != nil {
			return err
		}
		if client == "" {
			return askToSignIn{problem{status: http.StatusForbidden, key: "session.none"}}
		}
		return v.signedIn(client, actor, v.presented()...)
	}
	id, secret, ok := v.seal.open(v.r, time.Now())
	if !ok {
		return askToSignIn{noSession(v.r, v.isAgain)}
	}
	err := v.verify(id, secret)
	// An error that asks to wait can wrap ErrInvalidCredentials too, and the secret may be right.
	if e, ok := errors.AsType[*webhookcfg.Error](err); ok && e.Code == "invalid_client" {
		http.SetCookie(v.w, newCookie(sessionCookie, "", -1))
		return askToSignIn{problem{status: http.StatusForbidden, key: "session.revoked"}}
	}
	return err
}

// noSession returns the reason why a request has no session. On a first visit nothing is
// wrong, so there's no text to show.
func noSession(r *http.Request, isAgain bool) problem {
	why := problem{status: http.StatusForbidden}
	_, err := r.Cookie(sessionCookie)
	switch {
	case err == nil:
		why.key = "session.ended" // the cookie stays: another replica may have its key
	case isAgain:
		why.key = "session.none"
	}
	return why
}

// verify asks the handler to verify an id and a secret. Until it has, the person has no name:
// the id can be a secret in the wrong field, and events show the actor.
func (v *visit) verify(id, secret string) error {
	client, err := v.handler.SignIn(v.ctx, id, secret)
	if err != nil {
		return err
	}
	return v.signedIn(client.ID, id, secret)
}

// signedIn lets the request act for a client. It refuses the person's secrets where an identifier or
// a host belongs, as the handler does for a request. Here they'd also get into the address of the
// next page.
func (v *visit) signedIn(client, actor string, secrets ...string) error {
	client, actor = strings.Clone(client), strings.Clone(actor) // an event can keep them
	v.Client, v.Person = client, cmp.Or(actor, client)
	v.ctx = webhookcfg.ContextWithActor(v.ctx, actor)
	v.trimID(v.Parent.ValidEntityID)
	if v.drop(secrets) {
		v.isAgain, v.page = false, "overview" // what is left of a form or an address means something else
		return problem{status: http.StatusBadRequest, key: "error.secret"}
	}
	return nil
}

// signIn starts a session, and then shows the page that the person asked for. If they had
// sent a form before, it shows the form with their fields again, and doesn't make the change.
func signIn(v *visit) error {
	id, secret := v.typed("username"), v.typed("password")
	page := cmp.Or(v.typed("then"), "overview")
	then, ok := v.routes[page]
	if !ok || then.isPublic || v.Options.SignIn == nil {
		return notFound
	}
	v.page, v.isAgain = page, v.form.Has("again")
	own := slices.Concat(credentials, then.kept(v.isAgain))
	for field := range v.form {
		if !slices.Contains(own, field) {
			v.isAgain = false // nothing of it can be sent again
			return oddForm
		}
	}
	cookie := v.seal.seal(id, secret, time.Now().Add(maxSession))
	if len(cookie.String()) > maxCookie {
		return askToSignIn{problem{status: http.StatusBadRequest, key: "session.long"}}
	}
	if err := v.verify(id, secret); err != nil {
		return askToSignIn{err}
	}
	if !keepsCookies(v.r) {
		return askToSignIn{problem{status: http.StatusForbidden, key: "session.cookie"}}
	}
	http.SetCookie(v.w, cookie)
	if v.isAgain {
		v.Done = v.routes["sign-in"].form.done
		if err := v.checkClient(v.Client); err != nil {
			v.Done = ""
			v.fail(err)
		}
		return then.get(v)
	}
	return v.w.redirect(pageAddress(v.page, v.kept(then, v.isAgain)))
}

// keepsCookies reports whether the browser has kept the cookie that came with the form, or a
// session.
func keepsCookies(r *http.Request) bool {
	_, noNotice := r.Cookie(noticeCookie)
	_, noSession := r.Cookie(sessionCookie)
	return noNotice == nil || noSession == nil
}

func signOut(v *visit) error {
	if v.Options.SignIn != nil {
		http.SetCookie(v.w, newCookie(sessionCookie, "", -1))
	}
	return toOverview(v)
}

func toOverview(v *visit) error { return v.w.redirect(pageAddress("overview", nil)) }

// sessionTexts are the words of the sign-in.
var sessionTexts = map[string]string{
	"done.sign-in":    "You're signed in again. What you typed is still here: check it, and send it again.",
	"session.none":    "You're not signed in. Sign in to go on.",
	"session.ended":   "Your session has ended. Sign in again.",
	"session.revoked": "The secret that you signed in with is no longer valid. Sign in with the present one.",
	"session.cookie":  "Your browser didn't keep the session. Use https, allow cookies for this site, and sign in again.",
	"session.long":    "This ID and secret are too long to sign in with here. Ask for a shorter secret.",
	"error.secret":    "Nothing was changed, and nothing was kept: that's your secret, and neither the ID of an entity nor the name of a host.",
}
