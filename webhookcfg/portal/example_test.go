package portal_test

import (
	"fmt"
	"net/http"

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
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
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
	fmt.Println(http.ListenAndServeTLS(":443", "cert.pem", "key.pem", handler.Before(mux)))
}
