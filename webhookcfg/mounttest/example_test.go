package mounttest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// A mux redirects paths that it would clean, and clients follow with the same method:
// "…/e1/.." then reaches all entities. With Handler.Before the same mux passes the check.
func ExampleCheck() {
	clients, err := auth.NewStatic(auth.Credential{ID: "mounttest", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := webhookcfg.NewHandler(store.NewMemory(), clients, &webhookcfg.Options{
		BasePath:  "/hooks",
		Reads:     true,
		ProbeMode: webhookcfg.ProbeOff, // there is nothing to reach in an example
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/hooks/", h)

	for _, mount := range []http.Handler{mux, h.Before(mux)} {
		staging := httptest.NewServer(mount)
		report, err := mounttest.Check(context.Background(), mounttest.Target{
			BaseURL:    staging.URL + "/hooks",
			ClientID:   "mounttest",
			Secret:     "a-long-random-secret",
			WebhookURL: "https://hooks.example.com/",
		})
		staging.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(report.Failures) == 0 {
			fmt.Println("passed")
			continue
		}
		first := report.Failures[0]
		fmt.Println(first.Outcome, first.Status, first.Location)
		fmt.Println(first.Advice)
	}
	// Output:
	// redirected 307 /hooks/api/v1/configure/configure-webhook
	// Turn off redirects to cleaned paths, or put Handler.Before in front of the part that sends them.
	// passed
}
