package main

import (
	"crypto/hkdf"
	"crypto/sha256"
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// testMessage is what a client sends itself from the page. It changes nothing.
var testMessage = deliver.Message{Body: []byte(`{"type":"test"}`)}

// page returns the page where people see and change the webhooks of a client. They sign in with
// the client's id and secret.
func (s *service) page(h *webhookcfg.Handler) (http.Handler, error) {
	signIn := new(portal.SignIn)
	for _, master := range s.cfg.masters {
		key, err := hkdf.Key(sha256.New, master, nil, "cookies of the page", 32)
		if err != nil {
			return nil, err
		}
		signIn.Keys = append(signIn.Keys, key)
	}
	return portal.New(h, &portal.Options{
		SignIn:        signIn,
		Test:          s.sender.Tester(testMessage),
		Try:           s.sender.Trier(testMessage),
		SigningKey:    deliver.SigningKey(s.keys),
		Notifications: s.queue,
	})
}
