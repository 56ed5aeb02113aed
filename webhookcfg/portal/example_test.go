package portal_test

import (
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// People sign in with a client's id and secret.
func Example() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.GenerateSecret()}})
	if err != nil {
		panic(err)
	}
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, &webhookcfg.Options{
		OmitPresentedID: true, // which can be a secret in the wrong field
	})
	if err != nil {
		panic(err)
	}
	pages, err := portal.New(handler, &portal.Options{SignIn: &portal.SignIn{}})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/portal/", pages)
	mux.Handle("/", handler)
	server := &http.Server{
		Addr: ":443", Handler: handler.Before(mux),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	fmt.Println(server.ListenAndServeTLS("cert.pem", "key.pem"))
}
