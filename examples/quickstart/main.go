// Command quickstart adds webhook configuration to a service with a route of its own.
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
	log.Print("listening on http://127.0.0.1:8080")
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", newService(store.NewMemory())))
}

func newService(webhooks webhookcfg.Store) http.Handler {
	acme := auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}}
	clients, err := auth.NewStatic(acme)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(webhooks, clients, &webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff, // by default a new URL must complete a TLS handshake
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notify/{client}/{entity}", func(w http.ResponseWriter, r *http.Request) {
		hook, err := webhooks.Resolve(r.Context(), r.PathValue("client"), r.PathValue("entity"))
		if err != nil {
			http.Error(w, "cannot resolve the webhook", http.StatusServiceUnavailable)
			return
		}
		// Send your notification to hook.URL.Reveal(). If you print a URL, its path stays hidden.
		fmt.Fprintf(w, "source=%v url=%v\n", hook.Source, hook.URL)
	})
	return handler.Before(mux)
}
