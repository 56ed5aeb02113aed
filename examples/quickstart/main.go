// Command quickstart mounts webhook configuration beside a host's own route.
package main

import (
	"fmt"
	"log"
	"net/http"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", service(store.NewMemory())))
}

func service(configurations webhookcfg.Store) http.Handler {
	clients, err := auth.Static(auth.Credential{ID: "acme", Secrets: []string{"a-long-random-secret"}})
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := webhookcfg.NewHandler(configurations, clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	hooks.Register(mux)
	mux.HandleFunc("GET /notify/{client}/{entity}", func(w http.ResponseWriter, r *http.Request) {
		hook, err := configurations.Resolve(r.Context(), r.PathValue("client"), r.PathValue("entity"))
		fmt.Fprintln(w, "would send to:", hook.URL, hook.Source, err) // hook.URL.Reveal() is the whole URL
	})
	return hooks.Before(mux)
}
